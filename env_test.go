package shardhop_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/shardhop/shardhop"
)

func TestConfigFrom(t *testing.T) {
	vars := map[string]string{
		"SHARDS":                "server_1",
		"SHARD_SERVER_1_DSN":    downDSN,
		"REDIS_URL":             "redis://sentinel_1:26379?addr=sentinel_2:26379",
		"REDIS_MODE":            "sentinel",
		"REDIS_SENTINEL_MASTER": "game",
		"SESSION_LIFETIME":      "12h",
		"SESSION_IDLE_TIMEOUT":  "30m",
		"COOKIE_SECURE":         "1",
	}
	cfg, err := shardhop.ConfigFrom(vars)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.RedisURL != vars["REDIS_URL"] || cfg.RedisMode != shardhop.RedisSentinel || cfg.RedisSentinelMaster != "game" ||
		cfg.SessionLifetime != 12*time.Hour || cfg.SessionIdleTimeout != 30*time.Minute || !cfg.CookieSecure ||
		len(cfg.Router.Shards) != 1 || cfg.Router.Shards[0].Name != "server_1" {
		t.Errorf("read %+v", cfg)
	}
}

func TestConfigFromDefaults(t *testing.T) {
	cfg, err := shardhop.ConfigFrom(map[string]string{
		"SHARDS": "server_1", "SHARD_SERVER_1_DSN": downDSN, "REDIS_URL": "redis://localhost",
		"SESSION_IDLE_TIMEOUT": "off", "REDIS_MODE": "", // set to nothing counts as unset
	})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.RedisMode != shardhop.RedisStandalone || cfg.SessionLifetime != 24*time.Hour || cfg.SessionIdleTimeout != 0 || cfg.CookieSecure {
		t.Errorf("read %+v", cfg)
	}
}

func TestConfigFromNamesEveryProblem(t *testing.T) {
	good := map[string]string{"SHARDS": "server_1", "SHARD_SERVER_1_DSN": downDSN, "REDIS_URL": "redis://localhost"}
	tests := []struct {
		name    string
		set     map[string]string
		reasons []string
	}{
		{
			"nothing is set",
			map[string]string{"SHARDS": "", "SHARD_SERVER_1_DSN": "", "REDIS_URL": ""},
			[]string{"SHARDS", "REDIS_URL: is not set"},
		},
		{
			"all at once, the router's among them",
			map[string]string{
				"SHARD_SERVER_1_DSN": "app:hunter2@tcp(", "SHARD_POLICY": "random", "REDIS_URL": "redis://:hunter2@", "REDIS_MODE": "clustre",
				"SESSION_LIFETIME": "1d", "SESSION_IDLE_TIMEOUT": "never", "COOKIE_SECURE": "yes",
			},
			[]string{"SHARD_SERVER_1_DSN", "SHARD_POLICY", "REDIS_URL", "REDIS_MODE", "SESSION_LIFETIME", "SESSION_IDLE_TIMEOUT", "COOKIE_SECURE"},
		},
		{
			"sentinels need a name",
			map[string]string{"REDIS_MODE": "sentinel"},
			[]string{"REDIS_SENTINEL_MASTER"},
		},
		{
			"a name needs sentinels",
			map[string]string{"REDIS_SENTINEL_MASTER": "game"},
			[]string{"REDIS_MODE"},
		},
		{
			"a player who waits for a shard would be logged out",
			map[string]string{"SESSION_IDLE_TIMEOUT": "90s", "SHARD_HOLD_TIMEOUT": "2m"},
			[]string{"SESSION_IDLE_TIMEOUT", "SHARD_HOLD_TIMEOUT"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			vars := maps.Clone(good)
			maps.Copy(vars, tt.set)
			_, err := shardhop.ConfigFrom(vars)
			if err == nil {
				t.Fatal("accepted")
			}
			for _, reason := range tt.reasons {
				if !strings.Contains(err.Error(), reason) {
					t.Errorf("the error does not name %q: %v", reason, err)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error shows a password: %v", err)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("the error takes more than a line: %q", err)
			}
		})
	}
}

func TestFromEnv(t *testing.T) {
	rdb := miniredis.RunT(t)
	t.Setenv("SHARDS", "server_1")
	t.Setenv("SHARD_SERVER_1_DSN", downDSN)
	t.Setenv("REDIS_URL", "redis://"+rdb.Addr())
	hop, err := shardhop.FromEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer hop.Close()
	if got := hop.Router.Shards(); len(got) != 1 || got[0] != "server_1" {
		t.Errorf("shards %q", got)
	}

	t.Setenv("REDIS_URL", "")
	if hop, err := shardhop.FromEnv(t.Context()); err == nil {
		t.Error("opened without Redis", hop.Close())
	}
}
