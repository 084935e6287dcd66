package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/shardhop/shardhop/healthcache"
)

// The roles of a node.
const (
	rolePrimary = "primary" // takes writes
	roleStandby = "standby" // answers, and takes none
)

// errNotReady: a member outside of its cluster's majority. It accepts connections
// and SELECT 1 all the same.
var errNotReady = errors.New("the member of a cluster is not ready")

// probe asks every node of the shard how it is, on connections of its own, and
// sums up: a shard is up as long as its writer takes writes.
func (p *pool) probe(ctx context.Context) healthcache.Result {
	began := time.Now()
	found := p.look(ctx)
	res := sumUp(found)
	if len(found) > 1 {
		res = p.succession.settle(ctx, found, began)
		p.cutSilent(found)
	}
	nodes := make([]healthcache.Node, len(found))
	for i := range found {
		nodes[i] = found[i].Node
	}
	p.clusters.learn(nodes)
	res.Nodes = p.clusters.recall(nodes)
	return res
}

// sumUp makes one result of a shard out of those of its nodes: the best of
// them counts.
func sumUp(found []sighting) healthcache.Result {
	best := found[0]
	for _, s := range found[1:] {
		if rank(s.State) < rank(best.State) {
			best = s
		}
	}
	res := healthcache.Result{State: best.State}
	if best.err != nil {
		res.Reason = reason(best.err)
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

// galeraCluster returns what names the cluster of a ready Galera member; see
// clusterID.
func galeraCluster(ctx context.Context, conn driver.QueryerContext, name string) (string, error) {
	const query = "SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_cluster_state_uuid')"
	rows, err := queryRows(ctx, conn, query, 2, 2)
	if err != nil {
		return "", err
	}
	status := make(map[string]string, len(rows))
	for _, row := range rows {
		status[text(row[0])] = text(row[1])
	}
	if !isOn(status["wsrep_ready"]) {
		return "", errNotReady
	}
	return clusterID(status["wsrep_cluster_state_uuid"], name), nil
}

// replicationGroup returns what names the group of a member of MySQL group
// replication that is online; empty for one that is not, or may not look. It
// takes writes only while more than half of the members are in reach.
func replicationGroup(ctx context.Context, conn driver.QueryerContext, name string) (string, error) {
	const query = "SELECT SUM(MEMBER_ID = @@global.server_uuid AND MEMBER_STATE = 'ONLINE'), " +
		"2 * SUM(MEMBER_STATE = 'UNREACHABLE') >= COUNT(*) FROM performance_schema.replication_group_members"
	row, err := queryRow(ctx, conn, query, 2)
	if _, refused := errors.AsType[*mysql.MySQLError](err); refused {
		return "", nil
	}
	switch {
	case err != nil:
		return "", err
	case isOn(row[1]):
		return "", errNotReady
	case !isOn(row[0]):
		return "", nil
	}
	return "group " + name, nil
}

// queryRow reads the first row of a query.
func queryRow(ctx context.Context, conn driver.QueryerContext, query string, columns int) ([]driver.Value, error) {
	rows, err := queryRows(ctx, conn, query, columns, 1)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, errors.New("no row")
	}
	return rows[0], nil
}

// queryRows reads the first rows of a query, most of them at the most, below
// database/sql. The driver panics on some malformed answers; here that is an
// error like any other.
func queryRows(ctx context.Context, conn driver.QueryerContext, query string, columns, most int) (all [][]driver.Value, err error) {
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
	for len(all) < most {
		row := make([]driver.Value, columns)
		if err := rows.Next(row); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok { // valid until the next call only
				row[i] = string(b)
			}
		}
		all = append(all, row)
	}
	return all, nil
}

// text is a value as the server wrote it; empty for NULL.
func text(v driver.Value) string {
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
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
