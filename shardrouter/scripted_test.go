package shardrouter_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/shardhop/shardhop/healthcache"
	"github.com/shardhop/shardhop/internal/lab"
	"github.com/shardhop/shardhop/internal/scriptserver"
	"github.com/shardhop/shardhop/shardrouter"
)

// occasions at which a scripted server gives its answer.
var occasions = []struct {
	name, match string
	run         func(ctx context.Context, l *shardrouter.Lease) error
}{
	{"Exec", "UPDATE", func(ctx context.Context, l *shardrouter.Lease) error {
		return exec(ctx, l.Conn(), "UPDATE t SET n = 1")
	}},
	{"Query", "SELECT n", func(ctx context.Context, l *shardrouter.Lease) error {
		return readAll(ctx, l.Conn(), "SELECT n FROM t")
	}},
	{"prepared", "UPDATE", func(ctx context.Context, l *shardrouter.Lease) error {
		stmt, err := l.Conn().PrepareContext(ctx, "UPDATE t SET n = ?")
		if err != nil {
			return err
		}
		defer stmt.Close()
		_, err = stmt.ExecContext(ctx, 1)
		return err
	}},
	{"in BeginTx", "UPDATE", func(ctx context.Context, l *shardrouter.Lease) error {
		return within(ctx, l, func(tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "UPDATE t SET n = 1")
			return err
		})
	}},
	{"COMMIT", "COMMIT", func(ctx context.Context, l *shardrouter.Lease) error {
		return within(ctx, l, func(*sql.Tx) error { return nil })
	}},
}

func within(ctx context.Context, l *shardrouter.Lease, body func(*sql.Tx) error) error {
	tx, err := l.Conn().BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := body(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// meaning is what an answer at one occasion should be taken for.
type meaning struct {
	verdict  shardrouter.Verdict
	progress shardrouter.Progress
	is       error // nil: it comes as the driver gives it
	again    bool  // the connection is lent again
}

// The kinds of answers, with what each means at the occasions in their order.
var (
	unknownCommit = meaning{shardrouter.VerdictUnknown, shardrouter.Unknown, shardrouter.ErrOutcomeUnknown, false}

	endsConnection = [...]meaning{
		{shardrouter.VerdictLost, shardrouter.Unknown, shardrouter.ErrOutcomeUnknown, false},
		{shardrouter.VerdictLost, shardrouter.Sent, shardrouter.ErrConnLost, false},
		{shardrouter.VerdictLost, shardrouter.Unknown, shardrouter.ErrOutcomeUnknown, false},
		{shardrouter.VerdictLost, shardrouter.RolledBack, shardrouter.ErrConnLost, false},
		unknownCommit,
	}
	takesNoWrites = [...]meaning{
		{shardrouter.VerdictReadOnly, shardrouter.Unknown, nil, false},
		{shardrouter.VerdictReadOnly, shardrouter.Unknown, nil, false},
		{shardrouter.VerdictReadOnly, shardrouter.Unknown, nil, false},
		{shardrouter.VerdictReadOnly, shardrouter.Unknown, nil, false},
		{shardrouter.VerdictReadOnly, shardrouter.RolledBack, nil, false},
	}
	ownError     = [...]meaning{ownMeaning, ownMeaning, ownMeaning, ownMeaning, unknownCommit}
	notCertified = [...]meaning{ownMeaning, ownMeaning, ownMeaning, ownMeaning, rolledBackCommit}
	rolledBack   = [...]meaning{rolledBackMeaning, rolledBackMeaning, rolledBackMeaning, rolledBackMeaning, rolledBackCommit}
	leavesOpen   = [...]meaning{
		{shardrouter.VerdictStatement, shardrouter.Unknown, shardrouter.ErrOutcomeUnknown, true},
		ownMeaning,
		{shardrouter.VerdictStatement, shardrouter.Unknown, shardrouter.ErrOutcomeUnknown, true},
		ownMeaning,
		unknownCommit,
	}
	interrupted = [...]meaning{
		{shardrouter.VerdictRolledBack, shardrouter.Unknown, shardrouter.ErrOutcomeUnknown, true},
		rolledBackMeaning,
		{shardrouter.VerdictRolledBack, shardrouter.Unknown, shardrouter.ErrOutcomeUnknown, true},
		rolledBackMeaning,
		unknownCommit,
	}

	ownMeaning        = meaning{shardrouter.VerdictStatement, shardrouter.Unknown, nil, true}
	rolledBackMeaning = meaning{shardrouter.VerdictRolledBack, shardrouter.Unknown, nil, true}
	rolledBackCommit  = meaning{shardrouter.VerdictRolledBack, shardrouter.RolledBack, nil, false}
)

// nonsense is what no MySQL server answers.
var nonsense = map[string]scriptserver.Answer{
	"a refusal of one byte":     scriptserver.Packet(0xff),
	"a short OK":                scriptserver.Packet(0),
	"a packet without a byte":   scriptserver.Packet(),
	"more columns than it says": scriptserver.Packet(0xfe),
	"a column cut short":        scriptserver.All(scriptserver.Packet(1), scriptserver.Packet(3, 'd')),
	"half a packet":             scriptserver.All(scriptserver.Raw(200, 0, 0, 1, 0), scriptserver.HangUp()),
	"a packet out of turn":      scriptserver.Raw(7, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0),
	"another protocol":          scriptserver.Raw([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")...),
}

// What each answer means at each occasion: its verdict, how far the statement
// got, what its error is, and whether the connection is lent again.
func TestScriptedAnswers(t *testing.T) {
	shutdown := scriptserver.Err(1053, "Server shutdown in progress")
	tests := map[string]struct {
		answer scriptserver.Answer
		want   [5]meaning
	}{
		"1053":                  {shutdown, endsConnection},
		"1053, and closed":      {scriptserver.All(shutdown, scriptserver.HangUp()), endsConnection},
		"closed":                {scriptserver.HangUp(), endsConnection},
		"silence":               {scriptserver.Silence(), endsConnection},
		"1927":                  {scriptserver.Err(1927, "Connection was killed"), endsConnection},
		"1047":                  {scriptserver.Err(1047, "WSREP has not yet prepared node for application use"), endsConnection},
		"1836":                  {scriptserver.Err(1836, "Running in read-only mode"), takesNoWrites},
		"1290, read-only":       {scriptserver.Err(1290, readOnlyText), takesNoWrites},
		"1290, super-read-only": {scriptserver.Err(1290, superReadOnlyText), takesNoWrites},
		"1290, another option":  {scriptserver.Err(1290, otherOptionText), ownError},
		"1792":                  {scriptserver.Err(1792, "Cannot execute statement in a READ ONLY transaction"), takesNoWrites},
		"1180":                  {scriptserver.Err(1180, "Got error 5 during COMMIT"), leavesOpen},
		"3100":                  {scriptserver.Err(3100, "Error on observer while running replication hook"), leavesOpen},
		"3101":                  {scriptserver.Err(3101, "Plugin instructed the server to rollback"), notCertified},
		"1317":                  {scriptserver.Err(1317, "Query execution was interrupted"), interrupted},
		"1213":                  {scriptserver.Err(1213, "Deadlock found when trying to get lock"), rolledBack},
		"1205":                  {scriptserver.Err(1205, "Lock wait timeout exceeded"), ownError},
		"1062":                  {scriptserver.Err(1062, "Duplicate entry"), ownError},
	}
	for name, answer := range nonsense {
		tests[name] = struct {
			answer scriptserver.Answer
			want   [5]meaning
		}{answer, endsConnection}
	}
	for name, tt := range tests {
		for i, o := range occasions {
			t.Run(name+"/"+o.name, func(t *testing.T) {
				s, params := scriptserver.New(t), ""
				if _, odd := nonsense[name]; odd || name == "silence" { // which may have no end
					params = "?readTimeout=300ms"
				}
				router := routerOf(t, s.DSN()+params)
				l := leaseInTime(t, router)
				thread := l.Thread()
				s.Answer(o.match, tt.answer)
				err := o.run(t.Context(), l)
				l.Release()
				if n := s.Got(o.match); n != 1 {
					t.Errorf("the server got the statement %d times", n)
				}
				tt.want[i].hold(t, err, o.match == "COMMIT")
				l = leaseInTime(t, router)
				defer l.Release()
				if again := l.Thread() == thread; again != tt.want[i].again {
					t.Errorf("the connection is lent again: %v, want %v", again, tt.want[i].again)
				}
			})
		}
	}
}

// leaseInTime takes a lease of a server whose read timeout may be too short for a
// machine that is busy.
func leaseInTime(t *testing.T, router *shardrouter.Router) (l *shardrouter.Lease) {
	t.Helper()
	lab.Eventually(t, 15*time.Second, "the server is reached in time", func() bool {
		var err error
		l, err = router.Lease(t.Context(), on("server_1"), "")
		return err == nil
	})
	return l
}

func (m meaning) hold(t *testing.T, err error, commit bool) {
	t.Helper()
	at := shardrouter.OnStatement
	if commit {
		at = shardrouter.OnCommit
	}
	verdict, progress := shardrouter.Classify(err, at), shardrouter.ProgressOf(err)
	if verdict != m.verdict || progress != m.progress {
		t.Errorf("%v is %v, %v; want %v, %v", err, verdict, progress, m.verdict, m.progress)
	}
	for _, is := range []error{shardrouter.ErrOutcomeUnknown, shardrouter.ErrConnLost} {
		if errors.Is(err, is) != errors.Is(m.is, is) {
			t.Errorf("%v: want %v", err, m.is)
		}
	}
	_, typed := errors.AsType[*shardrouter.StatementError](err)
	if !commit && typed != (m.is != nil) {
		t.Errorf("got %T, a StatementError is wanted: %v", err, m.is != nil)
	}
}

// Something that greets like a MySQL server and then talks nonsense must not
// end the process, neither from a probe nor from a request.
func TestServerThatTalksNonsense(t *testing.T) {
	for name, answer := range nonsense {
		t.Run(name, func(t *testing.T) {
			s := scriptserver.New(t)
			s.Answer("", answer)
			router, err := shardrouter.New(shardrouter.Config{
				HealthInterval: 50 * time.Millisecond,
				ProbeTimeout:   500 * time.Millisecond,
				Logger:         quiet(),
				Shards: []shardrouter.Shard{
					{Name: "nonsense", DSN: shardrouter.DSN(s.DSN())},
					{Name: "right", DSN: dsnAt(server.Addr())},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer router.Close()
			lab.Eventually(t, 15*time.Second, "the probe has given it up", func() bool {
				return router.Health().View("nonsense").State == healthcache.Down
			})
			if s.Got("read_only") == 0 {
				t.Error("no question came through the handshake to the answer")
			}
			l, err := router.Lease(t.Context(), on("nonsense"), "")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Release()
			if l.Shard() != "right" {
				t.Errorf("served by %s", l.Shard())
			}
		})
	}
}

// A server that shuts down in good order takes no new connections, refuses what
// is under way, and closes. Nobody notices.
func TestOrderlyShutdownUnderLoad(t *testing.T) {
	const players, each = 8, 10
	resetTable(t, "(n INT)")
	s := scriptserver.New(t)
	router, err := shardrouter.New(shardrouter.Config{
		HealthInterval: 100 * time.Millisecond, // so that it is called down within milliseconds
		Logger:         quiet(),
		Shards: []shardrouter.Shard{
			{Name: "server_1", DSN: shardrouter.DSN(s.DSN())},
			{Name: "server_2", DSN: dsnAt(server.Addr())},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer router.Close()
	var all sync.WaitGroup
	for player := range players {
		all.Go(func() {
			src := &session{f: &fleet{Router: router}, shard: "server_1"}
			defer src.end()
			for i := range each {
				if player == 0 && i == each/2 {
					s.Refuse()
					s.Answer("INTO tx VALUES (1)", scriptserver.All(scriptserver.Err(1053, "Server shutdown in progress"), scriptserver.HangUp()))
					s.Answer("INTO tx VALUES (2)", scriptserver.All(scriptserver.Err(1317, "Query execution was interrupted"), scriptserver.HangUp()))
					s.Answer("INTO tx VALUES (0)", scriptserver.HangUp())
				}
				err := shardrouter.Tx(t.Context(), src, shardrouter.TxOptions{}, func(ctx context.Context, tx *sql.Tx) error {
					_, err := tx.ExecContext(ctx, fmt.Sprintf("INSERT INTO tx VALUES (%d)", player%3))
					return err
				})
				if err != nil {
					t.Errorf("player %d: %v", player, err)
				}
			}
		})
	}
	all.Wait()
	before, after := s.Got("COMMIT"), count(t)
	if before+after != players*each || after == 0 {
		t.Errorf("%d transactions committed before the shutdown and %d after, want %d", before, after, players*each)
	}
}
