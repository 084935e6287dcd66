package embedded

import (
	"context"
	"sync"
	"time"

	"github.com/dolthub/go-mysql-server/memory"
	"github.com/dolthub/go-mysql-server/server"
	"github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/mysql"
	"github.com/dolthub/vitess/go/sqltypes"
	querypb "github.com/dolthub/vitess/go/vt/proto/query"
)

// errLockWaitTimeout is MySQL's number for a lock that was not had in time.
const errLockWaitTimeout = 1205

// gatedHandler puts the gate in front of the engine's handler. It leaves out
// the optional interfaces of the handler on purpose: the server then sends
// every statement through the methods below.
type gatedHandler struct {
	mysql.Handler
	gate     *gate
	gateWait time.Duration // longest wait for the gate
	idleWait time.Duration // longest silence of a connection that holds the gate
	build    server.SessionBuilder

	mu      sync.Mutex // taken by the goroutine of every connection
	clients map[uint32]*client
}

// client is one connection. Only the connection's own goroutine uses it.
type client struct {
	conn    *nodeConn
	session *memory.Session
	holds   bool
	idle    *time.Timer // cuts the connection while it holds the gate and is silent
}

// newSession builds the engine's session and remembers it, since the state of
// the transaction is kept there.
func (h *gatedHandler) newSession(ctx context.Context, c *mysql.Conn, addr string) (sql.Session, error) {
	s, err := h.build(ctx, c, addr)
	if err != nil {
		return nil, err
	}
	if cl, ok := h.client(c); ok {
		cl.session, _ = s.(*memory.Session)
	}
	return s, nil
}

func (h *gatedHandler) client(c *mysql.Conn) (*client, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cl, ok := h.clients[c.ConnectionID]
	return cl, ok
}

// NewConnection notes the connection.
func (h *gatedHandler) NewConnection(c *mysql.Conn) {
	if nc, ok := c.Conn.(*nodeConn); ok {
		idle := time.AfterFunc(time.Hour, nc.cut)
		idle.Stop()
		h.mu.Lock()
		h.clients[c.ConnectionID] = &client{conn: nc, idle: idle}
		h.mu.Unlock()
	}
	h.Handler.NewConnection(c)
}

// ConnectionClosed frees the gate. The engine keeps an open transaction in the
// session, so it is gone with it.
func (h *gatedHandler) ConnectionClosed(c *mysql.Conn) {
	h.Handler.ConnectionClosed(c)
	cl, ok := h.client(c)
	if !ok {
		return
	}
	cl.idle.Stop()
	h.leave(cl)
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.clients, c.ConnectionID)
}

// ComQuery runs a statement.
func (h *gatedHandler) ComQuery(ctx context.Context, c *mysql.Conn, query string, callback mysql.ResultSpoolFn) error {
	return h.gated(c, query, func() error { return h.Handler.ComQuery(ctx, c, query, callback) })
}

// ComMultiQuery runs the first of several statements and returns the rest.
func (h *gatedHandler) ComMultiQuery(ctx context.Context, c *mysql.Conn, query string, callback mysql.ResultSpoolFn) (rest string, err error) {
	err = h.gated(c, query, func() error {
		rest, err = h.Handler.ComMultiQuery(ctx, c, query, callback)
		return err
	})
	return rest, err
}

// ComPrepare analyses a statement.
func (h *gatedHandler) ComPrepare(ctx context.Context, c *mysql.Conn, query string, p *mysql.PrepareData) (fields []*querypb.Field, err error) {
	err = h.gated(c, query, func() error {
		fields, err = h.Handler.ComPrepare(ctx, c, query, p)
		return err
	})
	return fields, err
}

// ComStmtExecute runs a prepared statement.
func (h *gatedHandler) ComStmtExecute(ctx context.Context, c *mysql.Conn, p *mysql.PrepareData, callback func(*sqltypes.Result) error) error {
	return h.gated(c, p.PrepareStmt, func() error { return h.Handler.ComStmtExecute(ctx, c, p, callback) })
}

// ComResetConnection starts a new session, and ends the transaction with the
// old one.
func (h *gatedHandler) ComResetConnection(c *mysql.Conn) error {
	return h.gated(c, "set", func() error { return h.Handler.ComResetConnection(c) })
}

// gated runs one command of a connection behind the gate, if it needs it.
func (h *gatedHandler) gated(c *mysql.Conn, query string, run func() error) error {
	cl, ok := h.client(c)
	if !ok {
		return mysql.NewSQLError(mysql.ERUnknownError, mysql.SSUnknownSQLState, "unknown connection")
	}
	cl.idle.Stop()
	if !cl.holds && touchesTables(query) {
		if err := h.gate.enter(h.gateWait, cl.conn.ended); err != nil {
			return mysql.NewSQLError(errLockWaitTimeout, mysql.SSUnknownSQLState,
				"Lock wait timeout exceeded; try restarting transaction")
		}
		cl.holds = true
	}
	err := run()
	cl.settle(err)
	if cl.inTransaction() {
		if cl.holds {
			cl.idle.Reset(h.idleWait)
		}
		return err
	}
	h.leave(cl)
	return err
}

func (h *gatedHandler) leave(cl *client) {
	if cl.holds {
		cl.holds = false
		h.gate.leave()
	}
}

// settle undoes a failed statement outside a transaction. The engine leaves
// its implicit transaction open, and would commit the stale copies of its
// tables with the next statement.
func (cl *client) settle(err error) {
	if err == nil || cl.session == nil || cl.session.GetIgnoreAutoCommit() {
		return
	}
	_ = cl.session.Rollback(nil, nil) // drops the copies; it looks at neither argument
	cl.session.SetTransaction(nil)
}

func (cl *client) inTransaction() bool {
	return cl.session != nil && cl.session.GetTransaction() != nil
}
