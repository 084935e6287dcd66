package shardrouter_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/shardhop/shardhop/shardrouter"
)

func TestWithFile(t *testing.T) {
	tests := []struct {
		name, text, reason string
		want               map[string]string // beside SHARDS_FILE
		problem            string
	}{
		{"over the environment", "SHARDS=a,b\n", "the file wins", map[string]string{"SHARDS": "a,b", "SHARD_A_DSN": "env"}, ""},
		{"comments, blanks, CRLF", "# c\r\n\r\n  SHARD_A_DSN = x=y#z \r\n", "files are written by hand", map[string]string{"SHARDS": "a", "SHARD_A_DSN": "x=y#z"}, ""},
		{"empty file", "", "everything falls back to the environment", map[string]string{"SHARDS": "a", "SHARD_A_DSN": "env"}, ""},
		{"empty value", "SHARD_A_DSN=\n", "an empty variable counts as unset", map[string]string{"SHARDS": "a", "SHARD_A_DSN": ""}, ""},
		{"no =", "SHARDS=a\nhunter2\n", "the value may be a secret", nil, "line 2 has no ="},
		{"another variable", "REDIS_URL=redis://:hunter2@x\n", "it could not change at run time", nil, "line 1: want SHARDS or SHARD_"},
		{"twice", "SHARDS=a\nSHARDS=hunter2\n", "one of the two is a mistake", nil, "line 2: \"SHARDS\" stands there twice"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "shards")
			if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
				t.Fatal(err)
			}
			env := map[string]string{"SHARDS_FILE": path, "SHARDS": "a", "SHARD_A_DSN": "env"}
			got, err := shardrouter.WithFile(env)
			if tt.problem != "" {
				if err == nil || !strings.Contains(err.Error(), tt.problem) || strings.Contains(err.Error(), "hunter2") {
					t.Fatalf("error %v, want %q and no value: %s", err, tt.problem, tt.reason)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for key, want := range tt.want {
				if got[key] != want {
					t.Errorf("%s is %q, want %q: %s", key, got[key], want, tt.reason)
				}
			}
			if env["SHARDS"] != "a" {
				t.Error("the environment was changed")
			}
		})
	}
	for _, path := range []string{"/nowhere/shards", t.TempDir()} {
		if _, err := shardrouter.WithFile(map[string]string{"SHARDS_FILE": path}); err == nil || !strings.Contains(err.Error(), "SHARDS_FILE: cannot be read") {
			t.Errorf("%s: error %v", path, err)
		}
	}
}
