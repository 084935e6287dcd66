package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/shardhop/shardhop"
	"github.com/shardhop/shardhop/example-game/internal/admin"
	"github.com/shardhop/shardhop/example-game/internal/game"
	"github.com/shardhop/shardhop/metrics"
)

// shutdownTimeout is how long running requests get at the end.
const shutdownTimeout = 30 * time.Second

// App is a running game. Its methods are safe for use by several goroutines.
type App struct {
	environ []string
	log     *slog.Logger
	parts   parts
	hop     *shardhop.Hop
	game    *game.Game
	front   *listener // players
	back    *listener // operators
	once    sync.Once
}

// Run starts the game that environ describes, prints one line to stdout when
// it serves, logs to stderr, and stops when ctx is done, also when that is
// before it serves. An error means that it could not start, or that a port
// failed; it is one line. The log of go-redis, which is global, goes to stderr
// from then on.
func Run(ctx context.Context, environ []string, stdout, stderr io.Writer) error {
	hangups := make(chan os.Signal, 1) // before the start, which one shall not end
	signal.Notify(hangups, syscall.SIGHUP)
	defer signal.Stop(hangups)
	log := slog.New(slog.NewTextHandler(stderr, nil))
	redis.SetLogger(newRedisLog(log))
	a, err := Start(ctx, environ, log)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil // told to stop before there was anything to stop
	}
	if err != nil {
		return err
	}
	defer a.Shutdown()
	if _, err := fmt.Fprintln(stdout, a); err != nil {
		return fmt.Errorf("print the addresses: %w", err)
	}
	for {
		select {
		case <-hangups:
			if err := a.Reload(ctx); err != nil {
				log.ErrorContext(ctx, "shards not reloaded, everything stays as it was", "error", err)
			}
			continue
		case <-ctx.Done():
			return nil
		case err = <-a.front.failed:
		case err = <-a.back.failed:
		}
		return fmt.Errorf("serve: %w", err)
	}
}

// Start starts the game that environ describes. ctx bounds the start alone. The
// text of an error is one line.
func Start(ctx context.Context, environ []string, log *slog.Logger) (*App, error) {
	s, err := readSettings(variables(environ))
	if err != nil {
		return nil, oneLine{err}
	}
	a := &App{environ: environ, log: log}
	if err := a.start(ctx, s, log); err != nil {
		a.Shutdown()
		return nil, oneLine{err}
	}
	return a, nil
}

// start starts everything that s describes. What it has started when it fails,
// Shutdown stops.
func (a *App) start(ctx context.Context, s settings, log *slog.Logger) (err error) {
	if a.front, err = listen(ctx, "ADDR", s.addr, log); err != nil {
		return err
	}
	if a.back, err = listen(ctx, "ADMIN_ADDR", s.adminAddr, log); err != nil {
		return err
	}
	if a.parts, err = startParts(&s); err != nil {
		return err
	}
	s.library.Router.Logger, s.library.Middleware.Logger, s.library.Sessions.Logger = log, log, log
	collector := metrics.New()
	s.library.Router.Observer = collector.Observe(s.library.Router.Observer)
	if a.hop, err = shardhop.Open(ctx, s.library); err != nil {
		return err
	}
	a.game, err = game.New(game.Config{Hop: a.hop, CookieSecure: s.library.CookieSecure, Logger: log})
	if err != nil {
		return err
	}
	collector.Watch(a.hop.Router)
	operators := admin.Config{
		Router: a.hop.Router, Metrics: exposition(collector, log), Token: s.adminToken, Addr: s.adminAddr, Logger: log,
	}
	if len(a.parts.clusters) > 0 {
		operators.Lab = lab(a.parts.clusters)
	}
	board, err := admin.New(operators)
	if err != nil {
		return err
	}
	a.front.server.RegisterOnShutdown(a.game.Stop)
	a.front.server.RegisterOnShutdown(a.hop.Router.EndHolds)
	a.front.serve(a.game.Handler())
	a.back.serve(board)
	return nil
}

// errEmbedded: a reload would replace embedded shards by real ones, or the
// other way round.
var errEmbedded = errors.New("the shards are embedded, and stay so until the next start")

// Reload reads the variables of the start once more, with SHARDS_FILE, and has
// the game go on with the shards that they name. After an error everything is as
// it was; its text is one line.
func (a *App) Reload(ctx context.Context) error {
	s, err := readSettings(variables(a.environ))
	if err != nil {
		return oneLine{err}
	}
	if s.ownShards || len(a.parts.clusters) > 0 {
		return errEmbedded
	}
	if err := a.game.Reload(ctx, s.library.Router); err != nil {
		return oneLine{err}
	}
	return nil
}

// Shutdown stops everything, in the order that lets running requests end, and
// returns when it has ended. It is idempotent.
func (a *App) Shutdown() { a.once.Do(a.shutdown) }

func (a *App) shutdown() {
	ctx, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
	defer cancel()
	var ports sync.WaitGroup
	for _, l := range []*listener{a.front, a.back} {
		if l != nil {
			ports.Go(func() { l.shutdown(ctx) })
		}
	}
	ports.Wait()
	if a.game != nil {
		a.game.Close()
	}
	if a.hop != nil {
		_ = a.hop.Close() // nothing is left that could use it
	}
	a.parts.close()
}

// URL is where players go.
func (a *App) URL() string { return "http://" + a.front.addr() }

// AdminURL is where operators go.
func (a *App) AdminURL() string { return "http://" + a.back.addr() }

// String is the start line.
func (a *App) String() string {
	return fmt.Sprintf("game on %s, admin on %s, embedded: %s", a.URL(), a.AdminURL(), a.parts)
}
