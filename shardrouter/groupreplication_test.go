package shardrouter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/scriptserver"
	"github.com/shardhop/shardhop/shardrouter"
)

// groupMember is a MySQL server with group replication: online and minority are
// what it says of itself.
func groupMember(t *testing.T, name, online, minority string) *scriptserver.Server {
	t.Helper()
	s := scriptserver.New(t)
	s.Answer("group_replication_group_name", scriptserver.Rows([]string{"read_only", "thread", "life", "uuid", "gtid", "commits", "packet", "group"},
		[]string{"0", "7", s.Addr(), s.Addr(), "", "1NO_CHAIN", "16777216", name}))
	s.Answer("replication_group_members", scriptserver.Rows([]string{"online", "minority"}, []string{online, minority}))
	return s
}

// What members of MySQL's group replication are to each other, by what its
// documentation says that they answer.
func TestCopiesAreProvedByTheirReplicationGroup(t *testing.T) {
	const east, west = "8a94f357-aab4-11df-86ab-c80aa9429562", "8a94f357-aab4-11df-86ab-c80aa9429563"
	denied := groupMember(t, east, "1", "0")
	denied.Answer("replication_group_members", scriptserver.Err(1142, "SELECT command denied to user"))
	servers := []struct {
		server *scriptserver.Server
		state  healthcache.State
		copy   bool // of the first
		reason string
	}{
		{groupMember(t, east, "1", "0"), healthcache.Up, true, "a member"},
		{groupMember(t, east, "1", "0"), healthcache.Up, true, "another one, online"},
		{groupMember(t, west, "1", "0"), healthcache.Up, false, "of another group"},
		{groupMember(t, east, "0", "0"), healthcache.Up, false, "it recovers"},
		{groupMember(t, "", "0", "0"), healthcache.Up, false, "the plugin is there, and no group"},
		{denied, healthcache.Up, false, "it may not be asked"},
		{groupMember(t, east, "1", "1"), healthcache.Down, false, "it is cut off from the majority"},
		{scriptserver.New(t), healthcache.Up, false, "MySQL without the plugin"},
	}
	cfg := shardrouter.Config{HealthInterval: 100 * time.Millisecond, Logger: quiet()}
	for i, s := range servers {
		cfg.Shards = append(cfg.Shards, shardrouter.Shard{Name: fmt.Sprintf("server_%d", i+1), DSN: shardrouter.DSN(s.server.DSN())})
	}
	router := open(t, cfg)
	for i, s := range servers {
		await(t, router, s.state, router.Shards()[i])
		if got := router.Copies("server_1", router.Shards()[i]); got != s.copy {
			t.Errorf("server_%d is a copy of server_1: %v, want %v: %s", i+1, got, s.copy, s.reason)
		}
	}
}

// A session that comes to another member has waited for the group there, and its
// connection, which goes on waiting, is not lent again.
func TestSessionCatchesUpWithItsReplicationGroup(t *testing.T) {
	first, second := groupMember(t, "g", "1", "0"), groupMember(t, "g", "1", "0")
	router := open(t, shardrouter.Config{
		HealthInterval: 100 * time.Millisecond, Logger: quiet(),
		Shards: []shardrouter.Shard{
			{Name: "server_1", DSN: shardrouter.DSN(first.DSN())}, {Name: "server_2", DSN: shardrouter.DSN(second.DSN())},
		},
	})
	await(t, router, healthcache.Up, "server_1", "server_2")
	const wait = "group_replication_consistency='BEFORE'"
	lease := func() {
		l, err := router.Lease(t.Context(), on("server_1"), "")
		if err != nil {
			t.Fatal(err)
		}
		l.Release()
	}
	lease()
	if n := first.Got(wait); n != 0 {
		t.Errorf("a session that stays waited %d times", n)
	}
	first.Close()
	await(t, router, healthcache.Down, "server_1")
	lease()
	if n, tx := second.Got(wait), second.Got("START TRANSACTION READ ONLY"); n != 1 || tx != 1 {
		t.Errorf("on the other member it waited %d times, in %d transactions, want once", n, tx)
	}
	if n := router.Stats()[1].Discarded; n != 1 {
		t.Errorf("%d connections discarded, want 1", n)
	}
	second.Answer("START TRANSACTION", scriptserver.Err(3797, "Error while waiting for group transactions commit"))
	if _, err := router.Lease(t.Context(), on("server_1"), ""); !isUnavailable(err, shardrouter.ErrUnavailable) {
		t.Errorf("a member that cannot catch up: %v, want ErrUnavailable", err)
	}
}
