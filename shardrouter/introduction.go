package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// introduction is what a fresh connection's server says of itself.
type introduction struct {
	readOnly, galera bool
	leavesOpen       bool   // see settingsThatCommit
	packet           int64  // its max_allowed_packet; 0: not told
	clusterName      string // of a Galera member
	groupName        string // of a member of a group of MySQL group replication
	peer             peer
	who              identity
}

// peer is who is at the other end of a connection.
type peer struct {
	// thread is the connection's number on the server; 0: it did not tell, or is
	// behind a proxy that speaks MySQL, for which a number may mean another
	// player's connection.
	thread uint64
	// life is the server and the moment of its start. Restarted, it gives the
	// same numbers again, to others.
	life string
}

// identity tells servers apart, and what they have. What a server does not tell
// is empty.
type identity struct {
	server string // survives its restart
	life   string // see peer
	gtid   string // how far its history goes
}

// question is one thing that a server is asked about itself.
type question struct {
	sql    string
	answer func(in *introduction, value driver.Value)
}

var (
	askReadOnly = question{"@@global.read_only", func(in *introduction, v driver.Value) { in.readOnly = isOn(v) }}
	askThread   = question{"CONNECTION_ID()", func(in *introduction, v driver.Value) {
		in.peer.thread, _ = strconv.ParseUint(text(v), 10, 64) // 0: not told
	}}
	// The upper half of UUID_SHORT is the second of the start.
	askLife = question{"CONCAT(@@hostname, ':', @@port, ':', UUID_SHORT() >> 24)", func(in *introduction, v driver.Value) {
		in.peer.life, in.who.life = text(v), text(v)
	}}
	askGalera      = question{"@@global.wsrep_on", func(in *introduction, v driver.Value) { in.galera = isOn(v) }}
	askClusterName = question{"@@global.wsrep_cluster_name", func(in *introduction, v driver.Value) { in.clusterName = text(v) }}
	// MariaDB gives its servers no name of their own that survives a restart.
	askServerID = question{"CONCAT(@@hostname, ':', @@port, '#', @@global.server_id)", func(in *introduction, v driver.Value) {
		in.who.server = text(v)
	}}
	// Servers that cannot wait for their group, those before 8.0.14, do not
	// understand the question.
	askGroupName = question{"CONCAT(LEFT(@@global.group_replication_consistency, 0), @@global.group_replication_group_name)",
		func(in *introduction, v driver.Value) { in.groupName = text(v) }}
	askServerUUID  = question{"@@global.server_uuid", func(in *introduction, v driver.Value) { in.who.server = text(v) }}
	askMariaDBGTID = question{"@@global.gtid_current_pos", func(in *introduction, v driver.Value) { in.who.gtid = text(v) }}
	askMySQLGTID   = question{"@@global.gtid_executed", func(in *introduction, v driver.Value) { in.who.gtid = text(v) }}
	askCommits     = question{"CONCAT(@@autocommit, @@completion_type)", func(in *introduction, v driver.Value) {
		in.leavesOpen = text(v) != "1NO_CHAIN" && text(v) != "10"
	}}
)

// introductions are the queries for it, the most telling first: for MariaDB
// with Galera, for MySQL with group replication, for MySQL without, for servers
// that know neither's variables, or fewer still, and for those that only speak the
// protocol.
var introductions = [...][]question{
	{askReadOnly, askThread, askLife, askServerID, askMariaDBGTID, askCommits, askPacket, askGalera, askClusterName},
	{askReadOnly, askThread, askLife, askServerUUID, askMySQLGTID, askCommits, askPacket, askGroupName},
	{askReadOnly, askThread, askLife, askServerUUID, askMySQLGTID, askCommits, askPacket},
	{askReadOnly, askThread, askLife, askCommits, askPacket},
	{askReadOnly, askThread, askLife},
	{askReadOnly},
}

// settingsThatCommit are for the connections of a server that is set up to leave a
// transaction open behind a statement, or behind COMMIT (autocommit,
// completion_type). It would go on under the next holder of the connection, and
// what a statement was told to have written would be gone with the connection.
const settingsThatCommit = "SET autocommit=1, completion_type=0"

// introduce asks a fresh connection's server who it is, in one query from the
// second time on.
func (n *node) introduce(ctx context.Context, conn driver.QueryerContext) (introduction, error) {
	for i := int(n.manners.Load()); ; i++ {
		in, err := interview(ctx, conn, introductions[i])
		if err == nil {
			n.manners.Store(int32(i))
			kind := in.membership()
			n.member.Store(&kind)
			n.leavesOpen.Store(in.leavesOpen)
			n.packets.told.Store(in.packet)
			return in, nil
		}
		if !notUnderstood(err) || i == len(introductions)-1 {
			return introduction{}, err
		}
	}
}

// interview puts all questions in one query.
func interview(ctx context.Context, conn driver.QueryerContext, ask []question) (in introduction, err error) {
	columns := make([]string, len(ask))
	for i, q := range ask {
		columns[i] = q.sql
	}
	row, err := queryRow(ctx, conn, "SELECT "+strings.Join(columns, ", "), len(ask))
	if err != nil {
		return introduction{}, err
	}
	for i, q := range ask {
		q.answer(&in, row[i])
	}
	return in, nil
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

// membership is by what a server is kept in step with others.
type membership int

const (
	memberOfNone membership = iota
	memberOfGalera
	memberOfGroup // of MySQL group replication
)

func (in introduction) membership() membership {
	switch {
	case in.galera:
		return memberOfGalera
	case in.groupName != "":
		return memberOfGroup
	}
	return memberOfNone
}

// role tells whether the node takes writes, and of which cluster it is a
// member. A member without a majority gives errNotReady.
func (in introduction) role(ctx context.Context, conn driver.QueryerContext) (role, cluster string, err error) {
	switch in.membership() {
	case memberOfGalera:
		cluster, err = galeraCluster(ctx, conn, in.clusterName)
	case memberOfGroup:
		cluster, err = replicationGroup(ctx, conn, in.groupName)
	}
	if err != nil {
		return "", "", err
	}
	if in.readOnly {
		return roleStandby, cluster, nil
	}
	return rolePrimary, cluster, nil
}
