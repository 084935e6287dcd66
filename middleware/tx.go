package middleware

import (
	"context"
	"fmt"

	"github.com/shardhop/shardhop/shardrouter"
)

// Tx runs fn in a transaction on the request's connection, taking one first if
// there is none; see shardrouter.Tx. The lease may move to another shard
// between two runs of fn: inside fn use the transaction and the context that
// fn gets, and after it ask Conn and Shard again.
func Tx(ctx context.Context, fn shardrouter.TxFunc) error {
	return TxWith(ctx, shardrouter.TxOptions{}, fn)
}

// TxWith is Tx with options.
func TxWith(ctx context.Context, opts shardrouter.TxOptions, fn shardrouter.TxFunc) error {
	return shardrouter.Tx(ctx, source{seatOf(ctx, "Tx")}, opts, fn)
}

// TxAnswer is TxWith for a body that returns the answer of the request. With a
// Key in opts, whose Scope names the player, a repeat gets the answer that was
// stored with the first; see shardrouter.TxAnswer.
func TxAnswer(ctx context.Context, opts shardrouter.TxOptions, fn shardrouter.AnswerFunc) (shardrouter.Answer, error) {
	return shardrouter.TxAnswer(ctx, source{seatOf(ctx, "TxAnswer")}, opts, fn)
}

// source lends a transaction the lease of the seat. What Lease takes anew is
// rotated and claimed as every lease of the request.
type source struct{ seat *seat }

func (s source) Lease(ctx context.Context) (*shardrouter.Lease, error) {
	l, err := s.seat.acquire(ctx)
	if err != nil {
		return nil, err
	}
	real, ok := l.(*shardrouter.Lease)
	if !ok {
		return nil, fmt.Errorf("middleware: a transaction needs a lease of a shardrouter.Router, not a %T", l)
	}
	return real, nil
}

func (s source) Lost(l *shardrouter.Lease) { s.seat.lost(l) }
