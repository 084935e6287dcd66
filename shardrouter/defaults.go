package shardrouter

import (
	"cmp"
	"log/slog"
	"slices"
	"time"
)

// The defaults of a Config, as its fields document them.
const (
	defaultConnectTimeout = 5 * time.Second
	defaultReadTimeout    = 30 * time.Second
	defaultWriteTimeout   = 10 * time.Second
	defaultProbeTimeout   = 3 * time.Second
	defaultAcquireTimeout = 10 * time.Second
	defaultBusyTimeout    = 3 * time.Second
	defaultRamp           = 50
	defaultHoldTimeout    = 60 * time.Second
	defaultHoldMax        = 1000
	defaultHealthInterval = time.Second
	defaultMaxConns       = 50
	defaultRetention      = 24 * time.Hour
	waitingPerConn        = 4
)

// withDefaults returns a copy in which every field that has a fixed default is
// set. Redis, Instance, Failback, MaxWaiting and the hooks stay as they are.
func (c Config) withDefaults() Config {
	c = c.withFigures()
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

// withFigures is withDefaults without the logger, whose default is the one of
// the moment when the router starts.
func (c Config) withFigures() Config {
	c.Policy = cmp.Or(c.Policy, PolicyWeighted)
	c.Rotation = cmp.Or(c.Rotation, RotationNext)
	c.RotateTo = cmp.Or(c.RotateTo, RotateToAny)
	c.Copies = cmp.Or(c.Copies, CopiesCluster)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, defaultConnectTimeout)
	c.ReadTimeout = cmp.Or(c.ReadTimeout, defaultReadTimeout)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, defaultWriteTimeout)
	c.AcquireTimeout = cmp.Or(c.AcquireTimeout, defaultAcquireTimeout)
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, min(defaultProbeTimeout, c.AcquireTimeout))
	c.BusyTimeout = cmp.Or(c.BusyTimeout, min(defaultBusyTimeout, c.AcquireTimeout))
	c.Ramp = cmp.Or(c.Ramp, defaultRamp)
	c.HoldTimeout = cmp.Or(c.HoldTimeout, defaultHoldTimeout)
	c.HoldMax = cmp.Or(c.HoldMax, defaultHoldMax)
	c.HealthInterval = cmp.Or(c.HealthInterval, defaultHealthInterval)
	c.OutcomeRetention = cmp.Or(c.OutcomeRetention, defaultRetention)
	c.Shards = slices.Clone(c.Shards)
	for i, s := range c.Shards {
		c.Shards[i] = s.withDefaults()
	}
	return c
}

func (s Shard) withDefaults() Shard {
	s.Weight = cmp.Or(s.Weight, 1)
	s.Group = cmp.Or(s.Group, DefaultGroup)
	s.OnFailure = cmp.Or(s.OnFailure, s.defaultOnFailure())
	s.MaxConns = cmp.Or(s.MaxConns, defaultMaxConns)
	return s
}

// defaultOnFailure waits for a standby where there is one.
func (s Shard) defaultOnFailure() OnFailure {
	if nodes, err := parseDSN(s.DSN, driverTimeouts{}); err == nil && len(nodes) > 1 {
		return OnFailureHoldFirst
	}
	return OnFailureRotate
}

// maxWaiting returns how many requests may wait for a connection of s.
func (c Config) maxWaiting(s Shard) int {
	return cmp.Or(c.MaxWaiting, waitingPerConn*s.MaxConns)
}

// driverTimeouts returns what the DSNs of c get that set none of their own.
func (c Config) driverTimeouts() driverTimeouts {
	return driverTimeouts{dial: c.ConnectTimeout, read: c.ReadTimeout, write: c.WriteTimeout}
}
