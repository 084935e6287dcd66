package shardrouter_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/internal/faultproxy"
	"github.com/shardhop/shardhop/shardrouter"
)

// A peer that falls silent costs what the driver's read timeout costs, and the
// driver's error is found in the wrapper's. Nothing is sent on that connection any
// more.
func TestWrapperWhereThePeerFallsSilent(t *testing.T) {
	const timeout = 300 * time.Millisecond
	proxy := faultproxy.New(t, server.Addr())
	bare, wrapped := scriptsFor(t, server.DSNAt(proxy.Addr())+"?readTimeout="+timeout.String())
	proxy.SetMode(faultproxy.Freeze)
	for name, conn := range map[string]*sql.Conn{"the driver": bare.conn, "the wrapper": wrapped.conn} {
		start := time.Now()
		err := exec(t.Context(), conn, "INSERT INTO nowhere VALUES (1)")
		if took := time.Since(start); took < timeout || took > 20*timeout {
			t.Errorf("%s gives up after %v", name, took)
		}
		if !errors.Is(err, mysql.ErrInvalidConn) || conn == wrapped.conn && !errors.Is(err, shardrouter.ErrOutcomeUnknown) {
			t.Errorf("%s gives %v", name, err)
		}
	}
	proxy.SetMode(faultproxy.Pass)
	want, got := exec(t.Context(), bare.conn, "DO 1"), exec(t.Context(), wrapped.conn, "DO 1")
	if !errors.Is(want, driver.ErrBadConn) || shardrouter.ProgressOf(got) != shardrouter.NotSent || errors.Is(got, driver.ErrBadConn) {
		t.Errorf("after that: the driver gives %v, the wrapper %v", want, got)
	}
}

// A transaction that cannot begin because its connection has gone says so, even
// where the end of the one before has not come through.
func TestBeginOnAConnectionThatHasGone(t *testing.T) {
	_, wrapped := scriptsFor(t, server.DSN())
	err := wrapped.conn.Raw(func(dc any) error {
		c := dc.(interface {
			driver.ConnBeginTx
			driver.ExecerContext
		})
		tx := must(c.BeginTx(t.Context(), driver.TxOptions{}))(t)
		defer func() { _ = tx.Rollback() }()
		if _, err := c.BeginTx(t.Context(), driver.TxOptions{}); !errors.Is(err, shardrouter.ErrTxOpen) {
			t.Errorf("on a living connection: got %v, want ErrTxOpen", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := c.ExecContext(ctx, "DO SLEEP(20)", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the end of the context", err)
		}
		_, err := c.BeginTx(t.Context(), driver.TxOptions{})
		return err
	})
	if errors.Is(err, shardrouter.ErrTxOpen) || !errors.Is(err, shardrouter.ErrConnLost) || shardrouter.ProgressOf(err) != shardrouter.NotSent {
		t.Errorf("got %v, want the end of the connection, not sent", err)
	}
}
