package shardrouter_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/shardhop/shardhop/shardrouter"
)

// variables are enough for two shards; the changes, NAME=value, come over them.
func variables(changes ...string) map[string]string {
	vars := map[string]string{
		"SHARDS":      "a,b",
		"SHARD_A_DSN": "app:hunter2@tcp(db1:3306)/game",
		"SHARD_B_DSN": "app:hunter2@tcp(db2:3306,db3:3306)/game",
	}
	for _, change := range changes {
		name, value, _ := strings.Cut(change, "=")
		vars[name] = value
	}
	return vars
}

func TestConfigFromDefaults(t *testing.T) {
	c, err := shardrouter.ConfigFrom(variables())
	if err != nil {
		t.Fatal(err)
	}
	want := shardrouter.Config{Shards: []shardrouter.Shard{
		{Name: "a", DSN: "app:hunter2@tcp(db1:3306)/game"},
		{Name: "b", DSN: "app:hunter2@tcp(db2:3306,db3:3306)/game"},
	}}.WithDefaults()
	sameConfig(t, c, want)
	if c.Logger != nil {
		t.Error("a logger was chosen for the caller")
	}
}

// sameConfig compares what variables can set.
func sameConfig(t *testing.T, got, want shardrouter.Config) {
	t.Helper()
	if len(got.Shards) != len(want.Shards) {
		t.Fatalf("%d shards, want %d", len(got.Shards), len(want.Shards))
	}
	for i := range want.Shards {
		if got.Shards[i] != want.Shards[i] {
			t.Errorf("shard %+v, want %+v", got.Shards[i], want.Shards[i])
		}
	}
	type common struct {
		policy                                     shardrouter.Policy
		rotation                                   shardrouter.Rotation
		to                                         shardrouter.RotateTo
		copies                                     shardrouter.CopiesProof
		connect, read, write, probe, acquire, busy time.Duration
		hold, interval, failback                   time.Duration
		holdMax, ramp                              int
	}
	of := func(c shardrouter.Config) common {
		return common{c.Policy, c.Rotation, c.RotateTo, c.Copies, c.ConnectTimeout, c.ReadTimeout, c.WriteTimeout, c.ProbeTimeout,
			c.AcquireTimeout, c.BusyTimeout, c.HoldTimeout, c.HealthInterval, c.Failback, c.HoldMax, c.Ramp}
	}
	if of(got) != of(want) {
		t.Errorf("common settings %+v, want %+v", of(got), of(want))
	}
}

func TestConfigFromReadsEveryVariable(t *testing.T) {
	c, err := shardrouter.ConfigFrom(variables(
		"SHARDS=b, a", "SHARD_A_WEIGHT=0", "SHARD_A_GROUP=east", "SHARD_A_ON_FAILURE=hold", "SHARD_A_MAX_CONNS=7",
		"SHARD_B_WEIGHT=3", "SHARD_B_GROUP=east", "SHARD_B_ON_FAILURE=fail",
		"SHARD_POLICY=least_conns", "SHARD_ROTATION=spread", "SHARD_ROTATE_TO=copies", "SHARD_COPIES=marker",
		"SHARD_CONNECT_TIMEOUT=1s", "SHARD_READ_TIMEOUT=2s", "SHARD_WRITE_TIMEOUT=3s", "SHARD_PROBE_TIMEOUT=400ms",
		"SHARD_ACQUIRE_TIMEOUT=5s", "SHARD_HOLD_TIMEOUT=1m10s", "SHARD_HOLD_MAX=8", "SHARD_HEALTH_INTERVAL=9s", "SHARD_FAILBACK=5m", "SHARD_RAMP=6",
		"SHARDS_FILE=/etc/game/shards", "PATH=/bin", "SHARD_OTHER=",
	))
	if err != nil {
		t.Fatal(err)
	}
	sameConfig(t, c, shardrouter.Config{
		Shards: []shardrouter.Shard{
			{Name: "b", DSN: "app:hunter2@tcp(db2:3306,db3:3306)/game", Weight: 3, Group: "east", OnFailure: "fail", MaxConns: 50},
			{Name: "a", DSN: "app:hunter2@tcp(db1:3306)/game", Weight: shardrouter.WeightNone, Group: "east", OnFailure: "hold", MaxConns: 7},
		},
		Policy: "least_conns", Rotation: "spread", RotateTo: "copies", Copies: "marker",
		ConnectTimeout: time.Second, ReadTimeout: 2 * time.Second, WriteTimeout: 3 * time.Second,
		ProbeTimeout: 400 * time.Millisecond, AcquireTimeout: 5 * time.Second, BusyTimeout: 3 * time.Second,
		HoldTimeout: 70 * time.Second, HoldMax: 8, HealthInterval: 9 * time.Second, Failback: 5 * time.Minute, Ramp: 6,
	})
}

func TestConfigFromEmptyCountsAsUnset(t *testing.T) {
	c, err := shardrouter.ConfigFrom(variables("SHARD_POLICY=", "SHARD_FAILBACK=", "SHARD_A_WEIGHT=", "SHARD_A_GROUP=", "SHARD_GONE_DSN="))
	if err != nil {
		t.Fatal(err)
	}
	if c.Policy != shardrouter.PolicyWeighted || c.Shards[0].Weight != 1 || c.Shards[0].Group != shardrouter.DefaultGroup {
		t.Errorf("policy %q, weight %d, group %q", c.Policy, c.Shards[0].Weight, c.Shards[0].Group)
	}
}

func TestConfigFromRefuses(t *testing.T) {
	tests := []struct {
		reason string
		vars   map[string]string
		want   []string
	}{
		{"nothing set", nil, []string{"SHARDS: is not set: want the names"}},
		{"a shard without a DSN", variables("SHARD_B_DSN="), []string{"SHARD_B_DSN: is not set: want user:password@tcp(host:3306)/database"}},
		{"a DSN that cannot be read", variables("SHARD_A_DSN=app:hunter2@tcp(db1:3306)"), []string{"SHARD_A_DSN: no slash"}},
		{"a DSN that asks for trouble", variables("SHARD_A_DSN=app:hunter2@tcp(db1)/g?rejectReadOnly=1"), []string{"SHARD_A_DSN: parameter rejectReadOnly"}},
		{"bad names", variables("SHARDS=a,,B-1,b,9"), []string{
			`SHARDS: name 2 of the list is ""`, `SHARDS: name 3 of the list is "B-1", want a lower-case letter`, `SHARDS: name 5 of the list is "9"`}},
		{"a DSN in the list of names", variables("SHARDS=a,b,app:hunter2@tcp(db3)/game"), []string{"SHARDS: name 3 of the list is a value of"}},
		{"a name twice", variables("SHARDS=a,b,a"), []string{"SHARDS: a is listed twice"}},
		{"a variable of a shard that is not listed", variables("SHARD_C_WEIGHT=2", "SHARD_ON_FAILURE=hold"),
			[]string{`SHARD_C_WEIGHT: no shard "c" is listed in SHARDS`, "SHARD_ON_FAILURE: unknown variable"}},
		{"a shard's name in lower case", variables("SHARD_a_WEIGHT=2"), []string{"SHARD_a_WEIGHT: want the name of the shard in upper case: SHARD_A_WEIGHT"}},
		{"a misspelt variable", variables("SHARD_PROBE_TIMOUT=3s", "SHARD_PASSWORD=hunter2"),
			[]string{"SHARD_PROBE_TIMOUT: unknown variable", "SHARD_PASSWORD: unknown variable"}},
		{"every kind of malformed value at once", variables("SHARD_POLICY=fastest", "SHARD_ROTATION=back", "SHARD_ROTATE_TO=all",
			"SHARD_CONNECT_TIMEOUT=5", "SHARD_READ_TIMEOUT=0s", "SHARD_WRITE_TIMEOUT=-1s", "SHARD_PROBE_TIMEOUT=x", "SHARD_ACQUIRE_TIMEOUT=x",
			"SHARD_HOLD_TIMEOUT=0s", "SHARD_HOLD_MAX=0", "SHARD_RAMP=0", "SHARD_HEALTH_INTERVAL=1", "SHARD_FAILBACK=never",
			"SHARD_A_WEIGHT=-1", "SHARD_A_GROUP=e st", "SHARD_A_ON_FAILURE=panic", "SHARD_A_MAX_CONNS=0"),
			[]string{`SHARD_POLICY: "fastest", want one of weighted, round_robin, least_conns`, `SHARD_ROTATION: "back", want one of next, spread`,
				`SHARD_ROTATE_TO: "all", want one of any, copies`, `SHARD_CONNECT_TIMEOUT: "5", want a duration`, "SHARD_READ_TIMEOUT:", "SHARD_WRITE_TIMEOUT:",
				"SHARD_PROBE_TIMEOUT:", "SHARD_ACQUIRE_TIMEOUT:", "SHARD_HOLD_TIMEOUT:", `SHARD_HOLD_MAX: "0", want a whole number from 1`, `SHARD_RAMP: "0", want a whole number from 1`, "SHARD_HEALTH_INTERVAL:",
				`SHARD_FAILBACK: "never", want "off" or a duration`, `SHARD_A_WEIGHT: "-1", want a whole number from 0`, `SHARD_A_GROUP: "e st"`,
				`SHARD_A_ON_FAILURE: "panic", want one of rotate, hold, hold_first, fail`, "SHARD_A_MAX_CONNS:"}},
		{"a group of zeros", variables("SHARD_A_WEIGHT=0", "SHARD_A_GROUP=west"), []string{"no shard of group west takes new players"}},
		{"two that do not fit together", variables("SHARD_PROBE_TIMEOUT=4s", "SHARD_ACQUIRE_TIMEOUT=2s"), []string{"(SHARD_PROBE_TIMEOUT) 4s is longer", "(SHARD_ACQUIRE_TIMEOUT) 2s"}},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			c, err := shardrouter.ConfigFrom(tt.vars)
			if err == nil {
				t.Fatal("no error")
			}
			if len(c.Shards) > 0 {
				t.Error("a configuration came with the error")
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("the error does not say %q:\n%v", want, err)
				}
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error tells the password, or takes more than a line: %v", err)
			}
		})
	}
}

// TestConfigFromShardsNamedLikeSettings holds that no name of a shard makes
// one of its variables mean something else.
func TestConfigFromShardsNamedLikeSettings(t *testing.T) {
	names := []string{"policy", "rotation", "rotate_to", "rotate", "connect", "connect_timeout", "read", "read_timeout", "write",
		"probe", "acquire", "hold", "hold_max", "health", "failback", "ramp", "dsn", "a_dsn", "a", "a_on", "on_failure", "max", "a_max", "weight"}
	vars := map[string]string{"SHARDS": strings.Join(names, ","), "SHARD_READ_TIMEOUT": "7s", "SHARD_HOLD_MAX": "70"}
	for _, name := range names {
		prefix := "SHARD_" + strings.ToUpper(name) + "_"
		shard := map[string]string{
			prefix + "DSN": "app:hunter2@tcp(" + name + ":3306)/game", prefix + "WEIGHT": "2", prefix + "GROUP": "g." + name,
			prefix + "ON_FAILURE": "hold", prefix + "MAX_CONNS": "9",
		}
		for v := range shard {
			if _, taken := vars[v]; taken {
				t.Fatalf("%s stands for two things", v)
			}
		}
		maps.Copy(vars, shard)
	}
	c, err := shardrouter.ConfigFrom(vars)
	if err != nil {
		t.Fatal(err)
	}
	if c.ReadTimeout != 7*time.Second || c.HoldMax != 70 {
		t.Errorf("read timeout %v, hold max %d", c.ReadTimeout, c.HoldMax)
	}
	for i, name := range names {
		want := shardrouter.Shard{Name: name, DSN: shardrouter.DSN("app:hunter2@tcp(" + name + ":3306)/game"), Weight: 2, Group: "g." + name, OnFailure: "hold", MaxConns: 9}
		if c.Shards[i] != want {
			t.Errorf("shard %+v, want %+v", c.Shards[i], want)
		}
	}
}

func TestConfigFromEnv(t *testing.T) {
	for name, value := range variables() {
		t.Setenv(name, value)
	}
	c, err := shardrouter.ConfigFromEnv()
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Shards) != 2 {
		t.Errorf("%d shards, want 2", len(c.Shards))
	}
}
