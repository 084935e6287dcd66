package middleware

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/shardhop/shardhop/shardrouter"
)

// verdict is how one kind of error is answered.
type verdict struct {
	err    error
	status int
	code   string // stands in the problem document
	retry  bool   // tell the client when to come again
}

// verdicts is the one table from error to answer; the first match counts, and
// what is not in it is unexpected. Outcomes stand before occasions, since an
// error may carry the evidence of another. Where something may have run, the
// client is not told to come again.
var verdicts = [...]verdict{
	{shardrouter.ErrOutcomeUnknown, http.StatusInternalServerError, "outcome_unknown", false},
	{shardrouter.ErrKeyReused, http.StatusUnprocessableEntity, "key_reused", false},
	{shardrouter.ErrKeyInProgress, http.StatusConflict, "key_in_progress", true},
	{shardrouter.ErrRolledBack, http.StatusServiceUnavailable, "conflict", true},
	{shardrouter.ErrNestedLease, http.StatusInternalServerError, "internal", false},
	{shardrouter.ErrUnavailable, http.StatusServiceUnavailable, "unavailable", true},
	{shardrouter.ErrBusy, http.StatusServiceUnavailable, "busy", true},
	{shardrouter.ErrShardDown, http.StatusServiceUnavailable, "unavailable", true},
	{shardrouter.ErrUnknownGroup, http.StatusServiceUnavailable, "unavailable", true},
	{shardrouter.ErrUnknownShard, http.StatusServiceUnavailable, "unavailable", true},
	{shardrouter.ErrConnLost, http.StatusServiceUnavailable, "connection_lost", true},
	{shardrouter.ErrClosed, http.StatusServiceUnavailable, "unavailable", true},
	{ErrNotStored, http.StatusServiceUnavailable, "unavailable", true},
	{ErrContended, http.StatusServiceUnavailable, "busy", true},
	{ErrTooLate, http.StatusServiceUnavailable, "timeout", true},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, "timeout", false},
	{context.Canceled, http.StatusServiceUnavailable, "canceled", false},
}

var unexpected = verdict{status: http.StatusInternalServerError, code: "internal"}

// answers are what the errors of statements come to, by the router's verdict on
// them.
var answers = map[shardrouter.Verdict]verdict{
	shardrouter.VerdictLost:       {status: http.StatusServiceUnavailable, code: "connection_lost"},
	shardrouter.VerdictReadOnly:   {status: http.StatusServiceUnavailable, code: "read_only", retry: true},
	shardrouter.VerdictBusy:       {status: http.StatusServiceUnavailable, code: "busy", retry: true},
	shardrouter.VerdictRolledBack: {status: http.StatusServiceUnavailable, code: "conflict", retry: true},
}

// verdictOn looks err up in the tables.
func verdictOn(err error) verdict {
	for _, v := range verdicts {
		if errors.Is(err, v.err) {
			return v
		}
	}
	if v, ok := answers[shardrouter.VerdictOf(err)]; ok {
		return v
	}
	return unexpected
}

// WriteError answers a request whose connection could not be had, or was lost,
// as the middleware itself would: logged, and with a status that the error
// stands for; 500 for one that means nothing to this package. err may be of
// Acquire, Tx, Assign or Move, or a query's. Call it before anything is
// written. Without the middleware it answers as its defaults would.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	if s, ok := r.Context().Value(seatKey{}).(*seat); ok {
		s.mount.refuseIn(s.answer, w, r, err)
		return
	}
	(&mount{cfg: Config{}.withDefaults(nil)}).refuse(w, r, err)
}

// refuseIn is refuse for a handler. An answer that is held back is reported
// when it goes out, since the request may be served after all.
func (m *mount) refuseIn(a *answer, w http.ResponseWriter, r *http.Request, err error) {
	v := verdictOn(err)
	if !a.isBeneath(w) || !a.mayHold(v.status) {
		m.refuse(w, r, err)
		return
	}
	m.answer(v, w, r, err)
	if report := func() { m.logRefusal(r, v, err) }; a.held != nil {
		a.held.report = report
	} else { // the application's ErrorHandler answered otherwise
		report()
	}
}

// refuse logs err with all that it carries, and answers with nothing of it.
func (m *mount) refuse(w http.ResponseWriter, r *http.Request, err error) {
	v := verdictOn(err)
	m.logRefusal(r, v, err)
	m.answer(v, w, r, err)
}

func (m *mount) answer(v verdict, w http.ResponseWriter, r *http.Request, err error) {
	if m.cfg.ErrorHandler != nil {
		m.cfg.ErrorHandler(w, r, err)
		return
	}
	v.answer(w, r, m.cfg.RetryAfter)
}

// logRefusal reports err as trouble, unless it is the client that went away.
func (m *mount) logRefusal(r *http.Request, v verdict, err error) {
	ctx := r.Context()
	level := slog.LevelWarn
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		level = slog.LevelDebug
	case v.status == http.StatusInternalServerError:
		level = slog.LevelError
	}
	m.cfg.Logger.LogAttrs(ctx, level, "request refused",
		slog.String("method", r.Method), slog.String("path", r.URL.Path),
		slog.Int("status", v.status), slog.String("code", v.code), slog.Any("error", err))
	if level != slog.LevelDebug && m.cfg.Observer.Refused != nil {
		m.cfg.Observer.Refused(err)
	}
}
