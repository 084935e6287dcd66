package shardrouter

import (
	"slices"
	"strings"
	"time"

	"github.com/shardhop/shardhop/internal/envread"
)

const (
	maxConnsLimit = 100_000
	holdMaxLimit  = 1_000_000
	rampLimit     = 1_000_000
)

// shardKeys end the variables of a single shard, SHARD_<NAME>_<KEY>. No
// variable that stands for all shards may end like this, or it would be
// ambiguous for a shard of the right name.
var shardKeys = []string{"DSN", "WEIGHT", "GROUP", "ON_FAILURE", "MAX_CONNS"}

// ConfigFromEnv reads the configuration from the environment of the process,
// and over it from the file that SHARDS_FILE names; see [ConfigFrom] and
// [WithFile].
func ConfigFromEnv() (Config, error) {
	vars, err := WithFile(envread.Environ())
	return envread.Parse(vars, err, ConfigFrom)
}

// ConfigFrom reads the configuration from variables: SHARDS, which is required
// and lists the names in rotation order, and SHARD_*. What is not set, or set
// to nothing, gets its default. Other variables are not looked at; SHARDS_FILE
// is for [WithFile].
//
// The configuration that it returns is valid. The error names every variable
// that is malformed, unknown, or of a shard that is not listed, with the
// expected form, in one line and without any account. Redis, Logger and the
// hooks are left for the caller to set.
func ConfigFrom(vars map[string]string) (Config, error) {
	r := envread.New(vars)
	c := readCommon(r)
	for _, name := range readNames(r) {
		c.Shards = append(c.Shards, readShard(r, name))
	}
	for _, variable := range r.Unasked("SHARD_") {
		reportUnknown(r, c.Shards, variable)
	}
	c = c.withFigures()
	r.Add(c.validateTogether())
	if err := r.Err(); err != nil {
		return Config{}, err
	}
	return c, nil
}

// readCommon reads what holds for all shards.
func readCommon(r *envread.Reader) Config {
	return Config{
		Policy:         envread.OneOf(r, "SHARD_POLICY", PolicyWeighted, policies...),
		Rotation:       envread.OneOf(r, "SHARD_ROTATION", RotationNext, rotations...),
		RotateTo:       envread.OneOf(r, "SHARD_ROTATE_TO", RotateToAny, rotateTos...),
		Copies:         envread.OneOf(r, "SHARD_COPIES", CopiesCluster, proofs...),
		ConnectTimeout: r.Duration("SHARD_CONNECT_TIMEOUT", 0),
		ReadTimeout:    r.Duration("SHARD_READ_TIMEOUT", 0),
		WriteTimeout:   r.Duration("SHARD_WRITE_TIMEOUT", 0),
		ProbeTimeout:   r.Duration("SHARD_PROBE_TIMEOUT", 0),
		AcquireTimeout: r.Duration("SHARD_ACQUIRE_TIMEOUT", 0),
		Ramp:           r.Int("SHARD_RAMP", 0, 1, rampLimit),
		HoldTimeout:    readHold(r),
		HoldMax:        r.Int("SHARD_HOLD_MAX", 0, 1, holdMaxLimit),
		HealthInterval: r.Duration("SHARD_HEALTH_INTERVAL", 0),
		Failback:       r.DurationOrOff("SHARD_FAILBACK", 0),

		OutcomeRetention: r.Duration("SHARD_OUTCOME_RETENTION", 0),
	}
}

// readHold reads the longest hold; off is none at all.
func readHold(r *envread.Reader) time.Duration {
	if d := r.DurationOrOff("SHARD_HOLD_TIMEOUT", defaultHoldTimeout); d > 0 {
		return d
	}
	return HoldNone
}

// readNames reads the list of shards and returns the names that are well
// formed, each once.
func readNames(r *envread.Reader) []string {
	list := r.Required("SHARDS", "the names of the shards in rotation order, such as server_1,server_2")
	if list == "" {
		return nil
	}
	var names []string
	place := 0
	for item := range strings.SplitSeq(list, ",") {
		place++
		switch name := strings.TrimSpace(item); {
		case !isName(name):
			r.Problemf("SHARDS", "name %d of the list is %s, want %s", place, envread.Quote(name), nameForm)
		case slices.Contains(names, name):
			r.Problemf("SHARDS", "%s is listed twice: give each shard a name of its own", name)
		default:
			names = append(names, name)
		}
	}
	return names
}

// readShard reads what holds for one shard.
func readShard(r *envread.Reader, name string) Shard {
	prefix := shardPrefix(name)
	s := Shard{
		Name:      name,
		DSN:       DSN(r.Required(prefix+"DSN", dsnForm)),
		Weight:    r.Int(prefix+"WEIGHT", 1, 0, maxWeight),
		Group:     r.String(prefix+"GROUP", DefaultGroup),
		OnFailure: envread.OneOf(r, prefix+"ON_FAILURE", "", onFailures...),
		MaxConns:  r.Int(prefix+"MAX_CONNS", defaultMaxConns, 1, maxConnsLimit),
	}
	if s.Weight == 0 {
		s.Weight = WeightNone
	}
	if !isGroup(s.Group) {
		r.Problemf(prefix+"GROUP", "%s, want %s", envread.Quote(s.Group), groupForm)
	}
	if s.DSN != "" {
		if _, err := parseDSN(s.DSN, driverTimeouts{}); err != nil {
			r.Problemf(prefix+"DSN", "%v", err)
		}
	}
	return s
}

func shardPrefix(name string) string { return "SHARD_" + strings.ToUpper(name) + "_" }

// reportUnknown says what is wrong with a variable that nothing asked for.
func reportUnknown(r *envread.Reader, shards []Shard, variable string) {
	name, key, ok := cutShardKey(variable)
	lower := strings.ToLower(name)
	switch {
	case !ok:
		r.Problemf(variable, "unknown variable; those of one shard are SHARD_<NAME>_ and one of %s", strings.Join(shardKeys, ", "))
	case slices.ContainsFunc(shards, func(s Shard) bool { return s.Name == lower }):
		r.Problemf(variable, "want the name of the shard in upper case: %s", shardPrefix(lower)+key)
	default:
		r.Problemf(variable, "no shard %s is listed in SHARDS", envread.Quote(lower))
	}
}

// cutShardKey takes SHARD_<NAME>_<KEY> apart.
func cutShardKey(variable string) (name, key string, ok bool) {
	for _, key := range shardKeys {
		if name, found := strings.CutSuffix(strings.TrimPrefix(variable, "SHARD_"), "_"+key); found && name != "" {
			return name, key, true
		}
	}
	return "", "", false
}
