package shardrouter_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/shardrouter"
)

// twoShards is a Config that is valid as it stands.
func twoShards() shardrouter.Config {
	return shardrouter.Config{Shards: []shardrouter.Shard{
		{Name: "a", DSN: "app:hunter2@tcp(a:3306)/game"},
		{Name: "b", DSN: "app:hunter2@tcp(b:3306)/game"},
	}}
}

func TestConfigDefaults(t *testing.T) {
	given := twoShards()
	c := given.WithDefaults()

	if c.Policy != shardrouter.PolicyWeighted || c.Rotation != shardrouter.RotationNext || c.RotateTo != shardrouter.RotateToAny {
		t.Errorf("choices %q, %q, %q", c.Policy, c.Rotation, c.RotateTo)
	}
	for _, d := range []struct {
		field     string
		got, want time.Duration
	}{
		{"ConnectTimeout", c.ConnectTimeout, 5 * time.Second},
		{"ReadTimeout", c.ReadTimeout, 30 * time.Second},
		{"WriteTimeout", c.WriteTimeout, 10 * time.Second},
		{"ProbeTimeout", c.ProbeTimeout, 3 * time.Second},
		{"AcquireTimeout", c.AcquireTimeout, 10 * time.Second},
		{"BusyTimeout", c.BusyTimeout, 3 * time.Second},
		{"HoldTimeout", c.HoldTimeout, time.Minute},
		{"HealthInterval", c.HealthInterval, time.Second},
		{"Failback", c.Failback, 0},
		{"OutcomeRetention", c.OutcomeRetention, 24 * time.Hour},
	} {
		if d.got != d.want {
			t.Errorf("%s = %v, want %v", d.field, d.got, d.want)
		}
	}
	if c.HoldMax != 1000 || c.Ramp != 50 || c.MaxWaitingFor(c.Shards[0]) != 200 || c.Logger != slog.Default() {
		t.Errorf("HoldMax %d, Ramp %d, waiting %d, logger %v", c.HoldMax, c.Ramp, c.MaxWaitingFor(c.Shards[0]), c.Logger)
	}
	want := shardrouter.Shard{Name: "a", DSN: "app:hunter2@tcp(a:3306)/game", Weight: 1, Group: "default", OnFailure: shardrouter.OnFailureRotate, MaxConns: 50}
	if c.Shards[0] != want {
		t.Errorf("shard %+v, want %+v", c.Shards[0], want)
	}
	if given.Shards[0].Weight != 0 {
		t.Error("the shards of the Config that was given were changed")
	}
}

func TestConfigDefaultsFitAShortBudget(t *testing.T) {
	c := twoShards()
	c.AcquireTimeout = time.Second
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	c = c.WithDefaults()
	if c.ProbeTimeout != time.Second || c.BusyTimeout != time.Second {
		t.Errorf("ProbeTimeout %v and BusyTimeout %v, want 1s each", c.ProbeTimeout, c.BusyTimeout)
	}
}

func TestConfigKeepsWhatIsSet(t *testing.T) {
	c := twoShards()
	c.MaxWaiting = 7
	c.Shards[0].Weight = shardrouter.WeightNone
	c = c.WithDefaults()
	if c.Shards[0].Weight != shardrouter.WeightNone || c.MaxWaitingFor(c.Shards[0]) != 7 {
		t.Errorf("weight %d, waiting %d", c.Shards[0].Weight, c.MaxWaitingFor(c.Shards[0]))
	}
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestConfigValidate(t *testing.T) {
	tests := []struct {
		reason string
		change func(*shardrouter.Config)
		want   []string
	}{
		{"no shard", func(c *shardrouter.Config) { c.Shards = nil }, []string{"at least one"}},
		{"no name", func(c *shardrouter.Config) { c.Shards[1].Name = "" }, []string{"shard 2 of Shards"}},
		{"a name for which Redis keys have no room", func(c *shardrouter.Config) { c.Shards[0].Name = "a:b" }, []string{"shard 1 of Shards"}},
		{"a name too long", func(c *shardrouter.Config) { c.Shards[0].Name = strings.Repeat("a", 33) }, []string{"shard 1 of Shards"}},
		{"a name twice", func(c *shardrouter.Config) { c.Shards[1].Name = "a" }, []string{"shard a is listed twice"}},
		{"no DSN", func(c *shardrouter.Config) { c.Shards[0].DSN = "" }, []string{"shard a: no DSN"}},
		{"a bad DSN", func(c *shardrouter.Config) { c.Shards[0].DSN = "app:hunter2@tcp(a:3306)" }, []string{"shard a: DSN: no slash"}},
		{"a negative weight", func(c *shardrouter.Config) { c.Shards[0].Weight = -2 }, []string{"shard a: weight -2"}},
		{"a weight out of bounds", func(c *shardrouter.Config) { c.Shards[0].Weight = 1_000_001 }, []string{"shard a: weight 1000001"}},
		{"a bad group", func(c *shardrouter.Config) { c.Shards[0].Group = "a b" }, []string{`shard a: group "a b"`}},
		{"a group too long", func(c *shardrouter.Config) { c.Shards[0].Group = strings.Repeat("a", 65) }, []string{`shard a: group`}},
		{"a pool of less than nothing", func(c *shardrouter.Config) { c.Shards[0].MaxConns = -1 }, []string{"shard a: MaxConns -1"}},
		{"unknown words", func(c *shardrouter.Config) {
			c.Policy, c.Rotation, c.RotateTo, c.Shards[1].OnFailure, c.Copies = "x", "y", "z", "q", "hope"
		}, []string{`Policy "x": want one of weighted, round_robin, least_conns`, `Rotation "y"`, `RotateTo "z"`, `Copies "hope": want one of cluster, marker`, `shard b: OnFailure "q"`}},
		{"negative durations", func(c *shardrouter.Config) { c.ConnectTimeout, c.AcquireTimeout, c.Failback = -1, -1, -1 },
			[]string{"ConnectTimeout -1ns", "AcquireTimeout -1ns", "(Failback) -1ns"}},
		{"negative bounds", func(c *shardrouter.Config) { c.MaxWaiting, c.HoldMax, c.Ramp = -1, -1, -1 }, []string{"MaxWaiting -1", "HoldMax -1", "Ramp -1"}},
		{"a probe longer than the budget", func(c *shardrouter.Config) { c.ProbeTimeout = 11 * time.Second },
			[]string{"ProbeTimeout (SHARD_PROBE_TIMEOUT) 11s is longer", "lower the first or raise the second"}},
		{"a wait longer than the budget", func(c *shardrouter.Config) { c.BusyTimeout = 11 * time.Second }, []string{"BusyTimeout 11s is longer"}},
		{"a fail-back shorter than a probe's interval", func(c *shardrouter.Config) { c.Failback = time.Millisecond }, []string{"(Failback, SHARD_FAILBACK) 1ms is shorter"}},
		{"a group that takes nobody", func(c *shardrouter.Config) {
			c.Shards[1].Group, c.Shards[1].Weight = "west", shardrouter.WeightNone
		}, []string{"no shard of group west takes new players"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			c := twoShards()
			tt.change(&c)
			err := c.Validate()
			if err == nil {
				t.Fatal("no error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells the password: %v", err)
			}
		})
	}
}
