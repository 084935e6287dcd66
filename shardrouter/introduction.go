package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"strconv"

	"github.com/go-sql-driver/mysql"
)

// introduction is what a fresh connection's server says of itself.
type introduction struct {
	readOnly, galera bool
	clusterName      string // of a Galera member
	peer             peer
}

// peer is who is at the other end of a connection.
type peer struct {
	// thread is the connection's number on the server; 0: it did not tell.
	thread uint64
	// life is the server and the moment of its start. Restarted, it gives the
	// same numbers again, to others.
	life string
}

// introductions are the queries for it, the most telling first: for MariaDB
// and Galera, for servers that do not know wsrep_on, and for those that only
// speak the protocol. The upper half of UUID_SHORT is the time of the start.
var introductions = [...]struct {
	query   string
	columns int
}{
	{"SELECT @@global.read_only, CONNECTION_ID(), CONCAT(@@hostname, ':', @@port, ':', UUID_SHORT() >> 24), @@global.wsrep_on, @@global.wsrep_cluster_name", 5},
	{"SELECT @@global.read_only, CONNECTION_ID(), CONCAT(@@hostname, ':', @@port, ':', UUID_SHORT() >> 24)", 3},
	{"SELECT @@global.read_only", 1},
}

// introduce asks a fresh connection's server who it is, in one query from the
// second time on.
func (n *node) introduce(ctx context.Context, conn driver.QueryerContext) (introduction, error) {
	for i := int(n.manners.Load()); ; i++ {
		ask := introductions[i]
		row, err := queryRow(ctx, conn, ask.query, ask.columns)
		if err == nil {
			n.manners.Store(int32(i))
			in := introduced(row)
			n.galera.Store(&in.galera)
			return in, nil
		}
		if !notUnderstood(err) || i == len(introductions)-1 {
			return introduction{}, err
		}
	}
}

func introduced(row []driver.Value) introduction {
	in := introduction{readOnly: isOn(row[0])}
	if len(row) > 1 {
		in.peer.thread, _ = strconv.ParseUint(text(row[1]), 10, 64) // 0: not told
		in.peer.life = text(row[2])
	}
	if len(row) > 3 {
		in.galera, in.clusterName = isOn(row[3]), text(row[4])
	}
	return in
}

// notUnderstood recognizes an unknown variable or function: 1193 and 1305, or
// the general 1105 of servers that only speak the protocol.
func notUnderstood(err error) bool {
	var me *mysql.MySQLError
	if !errors.As(err, &me) {
		return false
	}
	switch me.Number {
	case erUnknownError, erUnknownVariable, erNoSuchFunction:
		return true
	}
	return false
}

// role tells whether the node takes writes, and of which cluster it is a
// member; see node.role.
func (in introduction) role(ctx context.Context, conn driver.QueryerContext) (role, cluster string, err error) {
	if in.galera {
		if cluster, err = galeraCluster(ctx, conn, in.clusterName); err != nil {
			return "", "", err
		}
	}
	if in.readOnly {
		return roleStandby, cluster, nil
	}
	return rolePrimary, cluster, nil
}
