package game

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"net/http"
	"sync"

	"github.com/shardhop/shardhop"
	"github.com/shardhop/shardhop/example-game/internal/password"
	"github.com/shardhop/shardhop/shardrouter"
)

// Config configures a [Game]. Hop is required.
type Config struct {
	// Hop holds the sessions and lends the connections. Its middleware has to
	// be lazy.
	Hop *shardhop.Hop
	// SessionPrefix is that of the session keys in Redis. Default "session:".
	SessionPrefix string
	// CookieSecure tells that players come over HTTPS, and makes browsers
	// stay there.
	CookieSecure bool
	// Logger takes what went wrong. Default slog.Default().
	Logger *slog.Logger
}

// Game is the game of one process. Its methods are safe for use by several
// goroutines.
type Game struct {
	cfg    Config
	hop    *shardhop.Hop
	hasher *password.Hasher
	roster roster
	schema *schema
	log    *slog.Logger

	streams  *streams
	stopping chan struct{} // closed by Stop
	stop     sync.Once
}

// New returns a game and starts to make its tables on every shard. It fails
// when cfg lacks Hop.
func New(cfg Config) (*Game, error) {
	if cfg.Hop == nil {
		return nil, errors.New("game: Config.Hop is nil: make one with shardhop.Open")
	}
	if cfg.SessionPrefix == "" {
		cfg.SessionPrefix = "session:"
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	hasher, err := password.NewHasher()
	if err != nil {
		return nil, err
	}
	return &Game{
		cfg:      cfg,
		hop:      cfg.Hop,
		hasher:   hasher,
		roster:   roster{cfg.Hop.Redis},
		schema:   startSchema(cfg.Hop.Router, cfg.Logger),
		log:      cfg.Logger,
		streams:  newStreams(),
		stopping: make(chan struct{}),
	}, nil
}

// Stop ends the event streams, which would hold up a server that shuts down.
func (g *Game) Stop() { g.stop.Do(func() { close(g.stopping) }) }

// Close stops what runs in the background and waits for it. Call it after the
// server has shut down, and before Hop.Close. It is idempotent.
func (g *Game) Close() {
	g.Stop()
	g.schema.close()
}

// Reload has the game go on with the shards of cfg; see
// shardrouter.Router.Reload. A new shard has its tables before it takes players.
// Not to be called after Close.
func (g *Game) Reload(ctx context.Context, cfg shardrouter.Config) error {
	cfg.Prepare = func(ctx context.Context, shard string, conn *sql.Conn) error {
		return g.schema.ensure(ctx, shard, conn)
	}
	if err := g.hop.Router.Reload(ctx, cfg); err != nil {
		return err
	}
	g.schema.follow()
	return nil
}

// realms lists the groups of shards among which a player can choose.
func (g *Game) realms() []string { return g.hop.Router.Groups() }

// Handler serves the page and the API.
func (g *Game) Handler() http.Handler { return g.secure(g.routes()) }
