package shardrouter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// minHealthInterval is the shortest interval that healthcache takes.
const minHealthInterval = 10 * time.Millisecond

// maxWeight keeps the sums of the assignment far from the end of an int.
const maxWeight = 1_000_000

// validate names everything that is wrong with c, which has its defaults, and
// says how to mend it. The errors hold no account.
func (c Config) validate() error {
	return errors.Join(c.validateShards(), c.validateChoices(), c.validateFigures(), c.validateTogether())
}

// validateShards checks each shard by itself, and that no name comes twice.
func (c Config) validateShards() error {
	if len(c.Shards) == 0 {
		return errors.New("no shard is configured: Shards needs at least one")
	}
	var errs []error
	seen := make(map[string]bool)
	for i, s := range c.Shards {
		if !isName(s.Name) {
			errs = append(errs, fmt.Errorf("shard %d of Shards: Name is not %s", i+1, nameForm))
			continue
		}
		if seen[s.Name] {
			errs = append(errs, fmt.Errorf("shard %s is listed twice: give each a name of its own", s.Name))
		}
		seen[s.Name] = true
		if err := s.validate(c.driverTimeouts()); err != nil {
			errs = append(errs, fmt.Errorf("shard %s: %w", s.Name, err))
		}
	}
	return errors.Join(errs...)
}

func (s Shard) validate(timeouts driverTimeouts) error {
	var errs []error
	if s.DSN == "" {
		errs = append(errs, errors.New("no DSN is set: want "+dsnForm))
	} else if _, err := parseDSN(s.DSN, timeouts); err != nil {
		errs = append(errs, fmt.Errorf("DSN: %w", err))
	}
	if s.Weight != WeightNone && (s.Weight < 1 || s.Weight > maxWeight) {
		errs = append(errs, fmt.Errorf("weight %d: want 1 to %d, or WeightNone", s.Weight, maxWeight))
	}
	if !isGroup(s.Group) {
		errs = append(errs, fmt.Errorf("group %q: want %s", s.Group, groupForm))
	}
	if s.MaxConns < 1 {
		errs = append(errs, fmt.Errorf("MaxConns %d: want at least 1", s.MaxConns))
	}
	errs = append(errs, oneOf("OnFailure", s.OnFailure, onFailures))
	return errors.Join(errs...)
}

// validateChoices checks the fields that take one word of a few.
func (c Config) validateChoices() error {
	return errors.Join(
		oneOf("Policy", c.Policy, policies),
		oneOf("Rotation", c.Rotation, rotations),
		oneOf("RotateTo", c.RotateTo, rotateTos),
		oneOf("Copies", c.Copies, proofs),
	)
}

var (
	policies   = []Policy{PolicyWeighted, PolicyRoundRobin, PolicyLeastConns}
	rotations  = []Rotation{RotationNext, RotationSpread}
	proofs     = []CopiesProof{CopiesCluster, CopiesMarker}
	rotateTos  = []RotateTo{RotateToAny, RotateToCopies}
	onFailures = []OnFailure{OnFailureRotate, OnFailureHold, OnFailureHoldFirst, OnFailureFail}
)

func oneOf[T ~string](field string, value T, allowed []T) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	words := make([]string, len(allowed))
	for i, a := range allowed {
		words[i] = string(a)
	}
	return fmt.Errorf("%s %q: want one of %s", field, value, strings.Join(words, ", "))
}

// validateFigures checks the sign of every number.
func (c Config) validateFigures() error {
	var errs []error
	for _, d := range []struct {
		field string
		value time.Duration
	}{
		{"ConnectTimeout", c.ConnectTimeout}, {"ReadTimeout", c.ReadTimeout}, {"WriteTimeout", c.WriteTimeout},
		{"ProbeTimeout", c.ProbeTimeout}, {"AcquireTimeout", c.AcquireTimeout}, {"BusyTimeout", c.BusyTimeout},
		{"HealthInterval", c.HealthInterval},
	} {
		if d.value <= 0 {
			errs = append(errs, fmt.Errorf("%s %v: want more than 0, or 0 for the default", d.field, d.value))
		}
	}
	if c.HealthInterval > 0 && c.HealthInterval < minHealthInterval {
		errs = append(errs, fmt.Errorf("interval of probes (HealthInterval, SHARD_HEALTH_INTERVAL) %v: want at least %v", c.HealthInterval, minHealthInterval))
	}
	if c.HoldTimeout <= 0 && c.HoldTimeout != HoldNone {
		errs = append(errs, fmt.Errorf("HoldTimeout %v: want more than 0, 0 for the default, or HoldNone", c.HoldTimeout))
	}
	if c.Failback < 0 {
		errs = append(errs, fmt.Errorf("time to fail-back (Failback) %v: want a stable time, or 0 for never", c.Failback))
	}
	for _, n := range []struct {
		field string
		value int
	}{{"MaxWaiting", c.MaxWaiting}, {"HoldMax", c.HoldMax}, {"Ramp", c.Ramp}} {
		if n.value < 0 {
			errs = append(errs, fmt.Errorf("%s %d: want more than 0, or 0 for the default", n.field, n.value))
		}
	}
	return errors.Join(errs...)
}

// validateTogether checks what single fields cannot show. The texts name the
// fields and the variables, because either may have brought the values.
func (c Config) validateTogether() error {
	var errs []error
	if c.AcquireTimeout > 0 {
		if c.ProbeTimeout > c.AcquireTimeout {
			errs = append(errs, fmt.Errorf("ProbeTimeout (SHARD_PROBE_TIMEOUT) %v is longer than AcquireTimeout (SHARD_ACQUIRE_TIMEOUT) %v, in which the probe of a rotation has to fit: lower the first or raise the second", c.ProbeTimeout, c.AcquireTimeout))
		}
		if c.BusyTimeout > c.AcquireTimeout {
			errs = append(errs, fmt.Errorf("BusyTimeout %v is longer than AcquireTimeout (SHARD_ACQUIRE_TIMEOUT) %v, in which the wait for a full shard has to fit: lower the first or raise the second", c.BusyTimeout, c.AcquireTimeout))
		}
	}
	if least := 2 * (c.ReadTimeout + c.AcquireTimeout + max(c.HoldTimeout, 0)); c.OutcomeRetention < least {
		errs = append(errs, fmt.Errorf("time for which outcome rows are kept (OutcomeRetention, SHARD_OUTCOME_RETENTION) %v: want at least %v, twice ReadTimeout, AcquireTimeout and HoldTimeout together, or a row could be gone before its COMMIT is looked up", c.OutcomeRetention, least))
	}
	if c.Failback > 0 && c.Failback < c.HealthInterval {
		errs = append(errs, fmt.Errorf("time to fail-back (Failback, SHARD_FAILBACK) %v is shorter than HealthInterval (SHARD_HEALTH_INTERVAL) %v, so that no probe could show a shard stable for that long: raise the first or lower the second", c.Failback, c.HealthInterval))
	}
	return errors.Join(append(errs, c.validateGroups())...)
}

// validateGroups checks that every group can take a first assignment.
func (c Config) validateGroups() error {
	var order []string
	weight := make(map[string]int)
	for _, s := range c.Shards {
		if _, seen := weight[s.Group]; !seen {
			order = append(order, s.Group)
		}
		weight[s.Group] += max(0, s.Weight)
	}
	var errs []error
	for _, g := range order {
		if weight[g] == 0 {
			errs = append(errs, fmt.Errorf("no shard of group %s takes new players: give one of them a weight of at least 1 (SHARD_<NAME>_WEIGHT)", g))
		}
	}
	return errors.Join(errs...)
}
