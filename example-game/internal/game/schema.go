package game

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/shardhop/shardhop/example-game/internal/store"
	"github.com/shardhop/shardhop/shardrouter"
)

const (
	schemaTimeout = 10 * time.Second       // one try on one shard
	schemaPause   = 500 * time.Millisecond // between two tries
)

// schema makes the tables on every shard, one goroutine a shard, each until it
// has succeeded: a shard that is down at the start gets its tables when it
// comes up.
type schema struct {
	router *shardrouter.Router
	log    *slog.Logger
	ctx    context.Context // of the jobs
	cancel context.CancelFunc
	jobs   sync.WaitGroup

	mu    sync.Mutex // taken by the jobs and by requests
	ready map[string]bool
	begun map[string]bool // has a job, or had one
}

func startSchema(router *shardrouter.Router, log *slog.Logger) *schema {
	ctx, cancel := context.WithCancel(context.Background())
	s := &schema{router: router, log: log, ctx: ctx, cancel: cancel, ready: map[string]bool{}, begun: map[string]bool{}}
	s.follow()
	return s
}

// follow begins the jobs of the shards that have none yet, and forgets those
// that are gone.
func (s *schema) follow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	shards := s.router.Shards()
	for _, shard := range shards {
		if !s.begun[shard] && s.ctx.Err() == nil {
			s.begun[shard] = true
			s.jobs.Go(func() { s.prepare(s.ctx, shard) })
		}
	}
	for shard := range s.begun {
		if !slices.Contains(shards, shard) {
			delete(s.begun, shard)
			delete(s.ready, shard)
		}
	}
}

func (s *schema) close() {
	s.cancel()
	s.jobs.Wait()
}

// prepare tries until the shard has its tables. The first failure is logged,
// and the success that follows.
func (s *schema) prepare(ctx context.Context, shard string) {
	failed := false
	for ctx.Err() == nil {
		err := s.try(ctx, shard)
		if errors.Is(err, shardrouter.ErrUnknownShard) {
			return // it was removed
		}
		if err == nil {
			if failed {
				s.log.InfoContext(ctx, "shard has its tables now", "shard", shard)
			}
			return
		}
		if !failed && ctx.Err() == nil {
			failed = true
			s.log.WarnContext(ctx, "shard has no tables yet, trying on", "shard", shard, "error", err)
		}
		pause(ctx, schemaPause)
	}
}

func (s *schema) try(ctx context.Context, shard string) error {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	lease, err := s.router.Acquire(ctx, shard)
	if err != nil {
		return err
	}
	defer lease.Release()
	return s.ensure(ctx, shard, lease.Conn())
}

// ensure makes the tables of a shard if that was not done yet. A request calls
// it that is about to write the first row, and may be faster than the job.
func (s *schema) ensure(ctx context.Context, shard string, conn *sql.Conn) error {
	if s.isReady(shard) {
		return nil
	}
	if err := store.EnsureSchema(ctx, conn); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready[shard] = true
	return nil
}

func (s *schema) isReady(shard string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready[shard]
}

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
