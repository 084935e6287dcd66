package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/healthcache"
)

// The roles of a node.
const (
	rolePrimary = "primary" // takes writes
	roleStandby = "standby" // answers, and takes none
)

// errNotReady: a Galera member outside of its cluster's majority. It accepts
// connections and SELECT 1 all the same.
var errNotReady = errors.New("the Galera member is not ready")

// probe asks every node of the shard how it is, on connections of its own, and
// sums up: a shard is up as long as one node takes writes.
func (p *pool) probe(ctx context.Context) healthcache.Result {
	nodes := make([]healthcache.Node, len(p.connector.nodes))
	errs := make([]error, len(nodes))
	var wg sync.WaitGroup
	for i, n := range p.connector.nodes {
		wg.Go(func() { nodes[i], errs[i] = p.probeNode(ctx, n) })
	}
	wg.Wait()
	p.connector.prefer(nodes)
	return sumUp(nodes, errs)
}

// sumUp makes one result of a shard out of those of its nodes: the best of
// them counts.
func sumUp(nodes []healthcache.Node, errs []error) healthcache.Result {
	best := 0
	for i := range nodes {
		if rank(nodes[i].State) < rank(nodes[best].State) {
			best = i
		}
	}
	res := healthcache.Result{State: nodes[best].State, Nodes: nodes}
	if err := errs[best]; err != nil {
		res.Reason = reason(err)
	}
	return res
}

// rank orders states by how much a shard in them can do.
func rank(s healthcache.State) int {
	switch s {
	case healthcache.Up:
		return 0
	case healthcache.Busy:
		return 1
	case healthcache.ReadOnly:
		return 2
	case healthcache.Misconfigured:
		return 3
	default:
		return 4
	}
}

func (p *pool) probeNode(ctx context.Context, n *node) (healthcache.Node, error) {
	found := healthcache.Node{Addr: n.addr}
	conn, err := n.connect(ctx, p.era.Load())
	if err == nil {
		found.Role, err = n.role(ctx, conn)
		_ = conn.Close() // a probe's connection has nothing to lose
	}
	switch {
	case err == nil && found.Role == rolePrimary:
		found.State = healthcache.Up
	case err == nil:
		found.State, err = healthcache.ReadOnly, errNotWritable
	default:
		found.State = stateOf(p.classify(err, occasion{phase: phaseConnect}))
	}
	return found, err
}

// stateOf turns the verdict on a failed probe into the state that it shows.
func stateOf(v Verdict) healthcache.State {
	switch v {
	case VerdictBusy:
		return healthcache.Busy
	case VerdictMisconfigured:
		return healthcache.Misconfigured
	case VerdictReadOnly:
		return healthcache.ReadOnly
	default:
		return healthcache.Down
	}
}

// role asks a node whether it takes writes. A Galera member without a majority
// gives errNotReady.
func (n *node) role(ctx context.Context, conn driver.QueryerContext) (string, error) {
	readOnly, galera, err := n.variables(ctx, conn)
	if err != nil {
		return "", err
	}
	if galera {
		if err := galeraReady(ctx, conn); err != nil {
			return "", err
		}
	}
	if readOnly {
		return roleStandby, nil
	}
	return rolePrimary, nil
}

// variables reads read_only and wsrep_on in one query. Servers other than
// MariaDB and Galera do not know wsrep_on, and are asked without it from the
// second time on.
func (n *node) variables(ctx context.Context, conn driver.QueryerContext) (readOnly, galera bool, err error) {
	if !n.plain.Load() {
		row, err := queryRow(ctx, conn, "SELECT @@global.read_only, @@global.wsrep_on", 2)
		if err == nil {
			return isOn(row[0]), isOn(row[1]), nil
		}
		if !unknownVariable(err) {
			return false, false, err
		}
		n.plain.Store(true)
	}
	row, err := queryRow(ctx, conn, "SELECT @@global.read_only", 1)
	if err != nil {
		return false, false, err
	}
	return isOn(row[0]), false, nil
}

func galeraReady(ctx context.Context, conn driver.QueryerContext) error {
	row, err := queryRow(ctx, conn, "SHOW GLOBAL STATUS LIKE 'wsrep_ready'", 2)
	if err != nil {
		return err
	}
	if !isOn(row[1]) {
		return errNotReady
	}
	return nil
}

// unknownVariable recognizes "unknown system variable": 1193, or the general
// 1105 of servers that only speak the protocol.
func unknownVariable(err error) bool {
	var me *mysql.MySQLError
	return errors.As(err, &me) && (me.Number == 1193 || me.Number == 1105)
}

// queryRow reads the first row of a query, below database/sql. The driver
// panics on some malformed answers; here that is an error like any other.
func queryRow(ctx context.Context, conn driver.QueryerContext, query string, columns int) (row []driver.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %v", errProtocol, p)
		}
	}()
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	if got := len(rows.Columns()); got != columns {
		return nil, fmt.Errorf("%d columns instead of %d", got, columns)
	}
	row = make([]driver.Value, columns)
	if err := rows.Next(row); err != nil {
		if errors.Is(err, io.EOF) {
			return nil, errors.New("no row")
		}
		return nil, err
	}
	for i, v := range row {
		if b, ok := v.([]byte); ok { // valid until the next call only
			row[i] = string(b)
		}
	}
	return row, nil
}

func isOn(v driver.Value) bool {
	s := strings.ToUpper(fmt.Sprint(v))
	return s == "1" || s == "ON"
}

// reason tells an error for a health key and a log line. It keeps the driver's
// text, which names addresses and accounts but no password, short.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer in time"
	}
	const most = 200
	text := err.Error()
	if len(text) > most {
		text = text[:most]
	}
	return text
}
