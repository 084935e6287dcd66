package lab_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/shardhop/shardhop/internal/lab"
)

func TestDataFoldersAreMadeOnce(t *testing.T) {
	t.Setenv("TMPDIR", enterableFolder(t))
	lab.Galera(t, 1)
	first := templates(t)
	if len(first) != 2 {
		t.Errorf("templates: %v, want a plain one and a cluster's", first)
	}
	node := lab.Galera(t, 1)[0]
	lab.Exec(t, node.DSN(), "CREATE TABLE t (id INT PRIMARY KEY)")
	for name, made := range templates(t) {
		if !os.SameFile(first[name], made) {
			t.Errorf("%s was made again", name)
		}
	}
}

// templates returns the data folders in the cache by name.
func templates(t *testing.T) map[string]os.FileInfo {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(os.TempDir(), "*", "templates", "*"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]os.FileInfo{}
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			found[info.Name()] = info
		}
	}
	return found
}

// enterableFolder makes a folder that every user may enter.
func enterableFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("/var/tmp", "lab") //nolint:usetesting // other users cannot enter t.TempDir
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	return folder
}
