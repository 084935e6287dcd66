package sessionstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/shardhop/shardhop/sessionstore"
)

func TestClientOptionsFillWhatIsOpen(t *testing.T) {
	tests := []struct {
		name, reason string
		given        redis.UniversalOptions
		dial         time.Duration
		retries      int
	}{
		{"standalone", "a connection that went stale is tried once more", redis.UniversalOptions{Addrs: []string{"a:1"}}, 400 * time.Millisecond, 1},
		{"sentinels", "one of them may be silent", redis.UniversalOptions{Addrs: []string{"a:1", "b:1"}, MasterName: "game"}, 3 * time.Second, 1},
		{"several hosts are a cluster", "its client follows redirects by itself", redis.UniversalOptions{Addrs: []string{"a:1", "b:1"}}, 400 * time.Millisecond, 0},
		{"cluster behind one name", "its client follows redirects by itself", redis.UniversalOptions{Addrs: []string{"a:1"}, IsClusterMode: true}, 400 * time.Millisecond, 0},
	}
	for _, test := range tests {
		got := sessionstore.ClientOptions(test.given)
		if got.DialTimeout != test.dial || got.MaxRetries != test.retries {
			t.Errorf("%s: dial %v, %d retries; want %v, %d: %s", test.name, got.DialTimeout, got.MaxRetries, test.dial, test.retries, test.reason)
		}
		if got.ReadTimeout+400*time.Millisecond > time.Second || got.WriteTimeout != got.ReadTimeout || got.DialerRetries != 1 {
			t.Errorf("%s: a silent server takes longer than a second: %+v", test.name, got)
		}
	}
}

func TestClientOptionsKeepWhatIsSet(t *testing.T) {
	given := redis.UniversalOptions{
		Addrs: []string{"a:1"}, Username: "u", Password: "p", DB: 3, PoolSize: 7,
		DialTimeout: 1, ReadTimeout: 2, WriteTimeout: 3, MaxRetryBackoff: 4, MaxRetries: 5, DialerRetries: 6,
	}
	got := sessionstore.ClientOptions(given).Simple()
	if got.Addr != "a:1" || got.Username != "u" || got.Password != "p" || got.DB != 3 || got.PoolSize != 7 ||
		got.DialTimeout != 1 || got.ReadTimeout != 2 || got.WriteTimeout != 3 || got.MaxRetryBackoff != 4 ||
		got.MaxRetries != 5 || got.DialerRetries != 6 {
		t.Errorf("got %+v", got)
	}
	if given.ContextTimeoutEnabled {
		t.Error("the caller's own options changed")
	}
}

func TestClientOptionsInsist(t *testing.T) {
	got := sessionstore.ClientOptions(redis.UniversalOptions{
		ReadOnly: true, RouteByLatency: true, RouteRandomly: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeEnabled},
	})
	if got.ReadOnly || got.RouteByLatency || got.RouteRandomly {
		t.Error("routes would be read from replicas, which lag")
	}
	if !got.ContextTimeoutEnabled || !got.DisableIdentity || got.MaintNotificationsConfig.Mode != maintnotifications.ModeDisabled {
		t.Errorf("silent or old servers: %+v", got)
	}
}
