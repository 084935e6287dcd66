package embedded

import (
	"fmt"
	"io"
	stdlog "log"
	"sync"
	"time"

	sqle "github.com/dolthub/go-mysql-server"
	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	vitesslog "github.com/dolthub/vitess/go/vt/log"
	"github.com/sirupsen/logrus"
)

// Database is the name of the one database of the cluster.
const Database = "game"

// Config configures a [Cluster]. The zero value is usable.
type Config struct {
	// Nodes are the names of the nodes. Default server_1, server_2, server_3.
	Nodes []string
	// GateWait is how long a statement waits for a transaction of another
	// connection before it fails with error 1205. Default 5s.
	GateWait time.Duration
	// IdleWait is how long a transaction may be silent before its connection
	// is closed. Default 10s.
	IdleWait time.Duration
}

func (cfg Config) withDefaults() Config {
	if len(cfg.Nodes) == 0 {
		cfg.Nodes = []string{"server_1", "server_2", "server_3"}
	}
	if cfg.GateWait <= 0 {
		cfg.GateWait = 5 * time.Second
	}
	if cfg.IdleWait <= 0 {
		cfg.IdleWait = 10 * time.Second
	}
	return cfg
}

// Cluster is a set of MySQL nodes that serve the same rows from memory. Its
// methods are safe for use by several goroutines.
type Cluster struct {
	names  []string
	nodes  map[string]*node
	engine *sqle.Engine
	server *server.Server
	done   chan struct{} // closed when the server accepts no more
	once   sync.Once
}

// NewCluster starts the nodes on free loopback ports.
func NewCluster(cfg Config) (*Cluster, error) {
	cfg = cfg.withDefaults()
	silence()
	fan := newFanIn()
	srv, engine, err := newServer(cfg, fan)
	if err != nil {
		return nil, fmt.Errorf("embedded: %w", err)
	}
	c := &Cluster{
		names:  cfg.Nodes,
		nodes:  map[string]*node{},
		engine: engine,
		server: srv,
		done:   make(chan struct{}),
	}
	go func() {
		defer close(c.done)
		_ = srv.Start()
	}()
	for _, name := range cfg.Nodes {
		n, err := newNode(name, fan.deliver)
		if err != nil {
			_ = c.Close()
			return nil, err
		}
		c.nodes[name] = n
	}
	return c, nil
}

func newServer(cfg Config, fan *fanIn) (*server.Server, *sqle.Engine, error) {
	db := memory.NewDatabase(Database)
	db.EnablePrimaryKeyIndexes()
	provider := memory.NewDBProvider(db)
	engine := sqle.NewDefault(provider)
	h := &gatedHandler{
		gate:     newGate(),
		gateWait: cfg.GateWait,
		idleWait: cfg.IdleWait,
		build:    memory.NewSessionBuilder(provider),
		clients:  map[uint32]*client{},
	}
	wrap := func(inner mysql.Handler) (mysql.Handler, error) {
		h.Handler = inner
		return h, nil
	}
	srv, err := server.NewServerWithHandler(server.Config{Listener: fan},
		engine, sql.NewContext, h.newSession, nil, wrap)
	return srv, engine, err
}

// Close ends every connection, stops the server and waits for it. It is
// idempotent.
func (c *Cluster) Close() error {
	c.once.Do(c.close)
	return nil
}

func (c *Cluster) close() {
	for _, n := range c.nodes {
		n.stop()
	}
	_ = c.server.Close()
	<-c.done
	for _, n := range c.nodes {
		n.running.Wait()
	}
	_ = c.engine.Close() // its error is always that it was closed
}

// Nodes lists the names of the nodes.
func (c *Cluster) Nodes() []string { return append([]string(nil), c.names...) }

// DSN returns the data source name of a node; empty for an unknown one. It
// stays the same when the node is stopped and started.
func (c *Cluster) DSN(name string) string {
	n, ok := c.nodes[name]
	if !ok {
		return ""
	}
	return fmt.Sprintf("game@tcp(%s)/%s?interpolateParams=true", n.addr, Database)
}

// State tells what a node does; empty for an unknown one.
func (c *Cluster) State(name string) State {
	n, ok := c.nodes[name]
	if !ok {
		return ""
	}
	return n.current()
}

// Do breaks or mends a node: verb is stop, start, freeze or thaw. The error is
// ErrUnknownNode, ErrUnknownVerb, ErrWrongState, or that the port of the node
// is taken.
func (c *Cluster) Do(name, verb string) error {
	n, ok := c.nodes[name]
	if !ok {
		return fmt.Errorf("%w: %q", ErrUnknownNode, name)
	}
	switch verb {
	case "stop":
		n.stop()
		return nil
	case "start":
		return n.start()
	case "freeze":
		return n.freeze()
	case "thaw":
		return n.thaw()
	}
	return fmt.Errorf("%w: %q", ErrUnknownVerb, verb)
}

// silence keeps the engine from writing a line for every connection. Its
// loggers are global, so this is done once for the process.
var silence = sync.OnceFunc(func() {
	logrus.SetOutput(io.Discard)
	logrus.SetLevel(logrus.PanicLevel)
	quiet := stdlog.New(io.Discard, "", 0)
	vitesslog.Info, vitesslog.Infof = quiet.Print, quiet.Printf
	vitesslog.Warning, vitesslog.Warningf = quiet.Print, quiet.Printf
	vitesslog.Error, vitesslog.Errorf = quiet.Print, quiet.Printf
})
