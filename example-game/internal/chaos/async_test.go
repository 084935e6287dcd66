package chaos_test

import (
	"database/sql"
	"testing"
	"time"

	"github.com/shardhop/shardhop/example-game/internal/chaos"
	"github.com/shardhop/shardhop/internal/lab"
)

// lag is for how long the standby has got nothing when its primary dies. That is
// longer than any answer to a COMMIT is on its way, so that whatever the standby
// has was acknowledged.
const lag = 500 * time.Millisecond

// TestAsynchronousReplication kills a primary whose standby lags, and measures
// apart what replication loses by that: what the crashed primary's data has, and
// the standby's has not, before anybody plays on it. The players miss that and
// nothing else.
func TestAsynchronousReplication(t *testing.T) {
	t.Parallel()
	pair := lab.MariaDBPair(t)
	s := startShard(t, pair.DSN())
	s.crowd.RepeatNothing()
	pair.Await(1, 0)
	book := s.crowd.Book()
	var passedOn, kept chaos.Audit // on the standby, and on the primary
	var deeds int
	score := s.crowd.Play(func() {
		<-time.After(playFor)
		lab.Exec(t, pair.Node(1).RootDSN(), "STOP SLAVE IO_THREAD")
		<-time.After(lag)
		pair.Node(0).Kill()
		<-time.After(untilPromoted)
		pair.Node(0).AddArgs("--read-only=1") // nobody plays on it
		pair.Node(0).Start()
		lab.Exec(t, pair.Node(1).RootDSN(), "STOP SLAVE")
		old, promoted := lab.Open(t, pair.Node(0).RootDSN()), lab.Open(t, pair.Node(1).RootDSN())
		// No node takes writes, so that the book stands still.
		kept, passedOn = book.Audit(read(t, old)), book.Audit(read(t, promoted))
		deeds = outcomes(t, old) - outcomes(t, promoted)
		book.Settle(read(t, promoted))
		pair.Promote(1)
		s.awaitUp(t)
		<-time.After(playFor)
	})
	t.Logf("%d transactions were not passed on; what players had been told of: on the standby %v; on the crashed primary %v", deeds, passedOn, kept)
	audit := book.Audit(read(t, lab.Open(t, pair.Node(1).DSN())))
	t.Logf("\n%s\n%s", chaos.Header, chaos.Line("asynchronous standby promoted", 1, &score, audit))
	if !audit.Clean() {
		t.Errorf("besides what was not passed on: %v", audit)
	}
	if passedOn.Sum >= 0 || deeds == 0 {
		t.Errorf("the standby had %d gold too little, and %d transactions: it did not lag", -passedOn.Sum, deeds)
	}
	// What was under way at the crash nobody was told of yet: a deed a player.
	if kept.Sum < 0 || kept.Sum > players {
		t.Errorf("the crashed primary has not what it acknowledged: %v", kept)
	}
	if score.Failed > 0 {
		t.Errorf("%d of %d requests failed: %v", score.Failed, score.Requests, score.Kinds)
	}
}

// outcomes counts the transactions that a node has, by their outcome rows.
func outcomes(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT COUNT(*) FROM shardhop_outcomes").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
