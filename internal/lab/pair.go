package lab

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"
)

// Pair is a primary and a standby that replicates from it, asynchronously and
// by GTID. The account app cannot write to the one that is read-only.
type Pair struct {
	t     testing.TB
	nodes [2]*MariaDBServer
}

// MariaDBPair starts a pair: Node(0) is the primary, Node(1) the standby.
func MariaDBPair(t testing.TB, opts ...Option) *Pair {
	t.Helper()
	p := &Pair{t: t}
	for i := range p.nodes {
		args := []string{"--log-bin", "--log-slave-updates", "--gtid-strict-mode=1", fmt.Sprintf("--server-id=%d", i+1)}
		p.nodes[i] = MariaDB(t, append([]Option{WithArgs(args...)}, opts...)...)
	}
	p.Follow(1, 0)
	return p
}

// Node returns one of the two servers.
func (p *Pair) Node(i int) *MariaDBServer { return p.nodes[i] }

// DSN is the data source name of the account app with both addresses.
func (p *Pair) DSN() string { return p.nodes[0].DSNAt(p.nodes[0].Addr() + "," + p.nodes[1].Addr()) }

// Follow makes standby read-only and a replica of primary, from where its own
// history ends.
func (p *Pair) Follow(standby, primary int) {
	p.t.Helper()
	host, port, err := net.SplitHostPort(p.nodes[primary].Addr())
	if err != nil {
		p.t.Fatalf("lab: %v", err)
	}
	Exec(p.t, p.nodes[standby].RootDSN(),
		"SET GLOBAL read_only=1",
		"SET GLOBAL gtid_slave_pos=@@global.gtid_binlog_pos",
		fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='%s', MASTER_PASSWORD='%s', "+
			"MASTER_CONNECT_RETRY=1, MASTER_USE_GTID=slave_pos", host, port, rootUser, rootPassword),
		"START SLAVE")
}

// demoteTries is how often Demote tries, for a second each.
const demoteTries = 60

// Demote makes a primary read-only. Its running statements are waited for, its
// running transactions are not. A statement that waits for a row whose owner
// waits behind the change would hold it up without end, so that each try ends
// after a second, which lets both go on.
func (p *Pair) Demote(i int) {
	p.t.Helper()
	var err error
	for range demoteTries {
		if err = demoteOnce(p.nodes[i].RootDSN()); err == nil {
			return
		}
	}
	p.t.Fatalf("lab: make the primary read-only: %v", err)
}

func demoteOnce(dsn string) error {
	db, err := open(dsn)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	ctx, cancel := context.WithTimeout(context.Background(), execTimeout)
	defer cancel()
	if _, err := db.ExecContext(ctx, "SET SESSION lock_wait_timeout=1"); err != nil {
		return err
	}
	_, err = db.ExecContext(ctx, "SET GLOBAL read_only=1")
	return err
}

// Await waits until the standby has applied everything that the primary wrote.
func (p *Pair) Await(standby, primary int) {
	p.t.Helper()
	var at string
	if err := scanOnce(p.nodes[primary].RootDSN(), "SELECT @@global.gtid_binlog_pos", &at); err != nil {
		p.t.Fatalf("lab: position of the primary: %v", err)
	}
	Eventually(p.t, execTimeout, "the standby has caught up", func() bool {
		var late int
		err := scanOnce(p.nodes[standby].RootDSN(), fmt.Sprintf("SELECT MASTER_GTID_WAIT('%s', 0.5)", at), &late)
		return err == nil && late == 0
	})
}

// Promote ends a standby's replication and makes it writable.
func (p *Pair) Promote(i int) {
	p.t.Helper()
	Exec(p.t, p.nodes[i].RootDSN(), "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only=0")
}

// Switchover makes the standby the primary as an operator does, with a pause of
// at least d in which none of them takes writes: nothing is lost.
func (p *Pair) Switchover(from, to int, d time.Duration) {
	p.t.Helper()
	p.Demote(from)
	over := time.After(d)
	p.Await(to, from)
	<-over
	p.Promote(to)
	p.Follow(from, to)
}
