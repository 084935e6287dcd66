package game

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"net/http"

	"github.com/shardhop/shardhop/example-game/internal/jsonbody"
	"github.com/shardhop/shardhop/middleware"
	"github.com/shardhop/shardhop/shardrouter"
)

const (
	// keyHeader is what a client sends so that its request has its effect once,
	// however often it is sent.
	keyHeader = "Idempotency-Key"
	// replayedHeader says that the answer is that of an earlier request with
	// the same key.
	replayedHeader = "Idempotency-Replayed"
	// maxKey bounds a key, in bytes.
	maxKey = 255
	// deedRuns bounds how often a deed runs whose rows another was faster to
	// change. On Galera, players on different nodes meet only at COMMIT, and
	// with everybody giving to everybody they meet often.
	deedRuns = 50
)

// deed changes a player's gold in a transaction, and returns how much there is
// then. It may run more than once.
type deed func(ctx context.Context, tx *sql.Tx) (gold int64, err error)

// once runs a deed where the player's rows are, and returns its answer, a
// treasure. With a key that the player has used before, it returns the first
// answer again and runs nothing. A deed that is refused leaves the key free:
// nothing has happened, and a later try may fare better.
func (g *Game) once(ctx context.Context, p player, opts shardrouter.TxOptions, do deed) (done shardrouter.Answer, err error) {
	err = g.play(ctx, p, func(ctx context.Context) (err error) {
		done, err = middleware.TxAnswer(ctx, opts, func(ctx context.Context, tx *sql.Tx) ([]byte, error) {
			gold, err := do(ctx, tx)
			if err != nil {
				return nil, err
			}
			return json.Marshal(treasure{gold})
		})
		return err
	})
	return done, err
}

// onceOptions says whose key the request has, and what it is used for. The
// scope is the player, so that a key outlives the session, and nobody gets
// another's answer. The body can be read again afterwards.
func onceOptions(r *http.Request, p player) (shardrouter.TxOptions, error) {
	opts := shardrouter.TxOptions{MaxAttempts: deedRuns}
	key, err := idempotencyKey(r.Header)
	if err != nil || key == "" {
		return opts, err
	}
	opts.Key, opts.Scope = key, p.String()
	opts.Request, err = requestText(r)
	return opts, err
}

// idempotencyKey returns the client's key; "" when there is none.
func idempotencyKey(h http.Header) (string, error) {
	keys := h.Values(keyHeader)
	if len(keys) == 0 {
		return "", nil
	}
	if len(keys) > 1 || !isKey(keys[0]) {
		return "", errKey
	}
	return keys[0], nil
}

// isKey reports whether key is 1 to maxKey printable ASCII characters.
func isKey(key string) bool {
	for _, c := range []byte(key) {
		if c < ' ' || c > '~' {
			return false
		}
	}
	return key != "" && len(key) <= maxKey
}

// requestText is what a key is used for: method, path and body.
func requestText(r *http.Request) ([]byte, error) {
	body, err := jsonbody.Read(r)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return append([]byte(r.Method+" "+r.URL.Path+"\n"), body...), nil
}

// replyOnce answers with what once returned.
func replyOnce(w http.ResponseWriter, done shardrouter.Answer) error {
	if done.Repeated {
		w.Header().Set(replayedHeader, "true")
	}
	return reply(w, http.StatusOK, json.RawMessage(done.Body))
}
