package healthcache

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Writer is the node of a shard that takes the writes of the whole fleet: the
// value of the key db:writer:<shard>. The zero value says that none is recorded.
type Writer struct {
	// Addr is the node's configured address, host:port.
	Addr string `json:"addr"`
	// Server is what the server behind Addr called itself, so that another one
	// at the same address is noticed; empty where it gave itself no name.
	Server string `json:"server,omitempty"`
	// From and FromServer are Addr and Server of the node before, for as long as
	// the move from it is only announced: nobody is to be written to then.
	From       string `json:"from,omitempty"`
	FromServer string `json:"from_server,omitempty"`
	// Life is the server and the moment of its start.
	Life string `json:"life,omitempty"`
	// Epoch grows by one with every move from one server to another.
	Epoch uint64 `json:"epoch"`
	// GTID is the server's position when it was recorded.
	GTID string `json:"gtid,omitempty"`
	// Reason says in words why the record was written.
	Reason string `json:"reason,omitempty"`
	// By names the instance that wrote it.
	By string `json:"by,omitempty"`
	// Since is when the record was written, by Redis's clock.
	Since time.Time `json:"since,omitzero"`
}

// Announced reports whether the record says only who will take the writes, once
// everybody has had the time to hear of it.
func (w Writer) Announced() bool { return w.From != "" }

// Before is the record of the node before a move that is only announced.
func (w Writer) Before() Writer {
	return Writer{Addr: w.From, Server: w.FromServer, Epoch: w.Epoch}
}

// Writer returns the record of the node that takes a shard's writes, as it was
// read last, and whether that still counts: it was confirmed within three
// intervals. Without Redis it always does. It reads memory only. The zero Writer
// is the record of a shard that has none, or that is not in Config.Nodes.
func (c *Cache) Writer(shard string) (w Writer, fresh bool) {
	e := c.ledger.entry(writerKey(shard))
	fresh = c.fleet == nil || !e.at.IsZero() && time.Since(e.at) <= c.cfg.life()
	return writerIn(e.value), fresh
}

// WriterRead returns when the exchange with Redis began that confirmed the record
// last: nobody had moved it then. It is zero before the first, and now where there
// is no Redis. It reads memory only.
func (c *Cache) WriterRead(shard string) time.Time {
	if c.fleet == nil {
		return time.Now()
	}
	return c.ledger.entry(writerKey(shard)).at
}

// MoveWriter records that another node takes the writes of shard, if the record
// still is what Writer returned as from, and returns the record that stands
// afterwards: the own one, or that of an instance that was faster. By and Since
// of to are filled in. The fleet is told.
//
// A record that names another server than from is refused with ErrWriterSettling
// for three intervals after the last such move, so that instances that see
// different nodes do not move it to and fro; unless from was only announced. It fails for a shard that is not in
// Config.Nodes, and when Redis does not answer; what stands there is not known
// then.
func (c *Cache) MoveWriter(ctx context.Context, shard string, from, to Writer) (Writer, error) {
	if len((*c.nodes.Load())[shard]) == 0 {
		return Writer{}, fmt.Errorf("%w: %.64q", ErrUnknownShard, shard)
	}
	key, began := writerKey(shard), time.Now()
	e := c.ledger.entry(key)
	if stands := writerIn(e.value); !stands.same(from) {
		return stands, nil // it was moved meanwhile
	}
	to.By = c.cfg.Instance
	if c.fleet == nil {
		to.Since = began
		c.ledger.learn(key, to.encode(), began)
		return to, nil
	}
	ctx, cancel := context.WithTimeout(ctx, c.cfg.refreshTimeout())
	defer cancel()
	value, err := c.fleet.moveWriter(ctx, shard, e.value, to, from.Epoch > 0 && from.Epoch != to.Epoch && !from.Announced())
	if err != nil {
		return Writer{}, fmt.Errorf("healthcache: move the writer of %s: %w", shard, err)
	}
	c.ledger.replaced(key, e.value, value, began)
	stands := writerIn(value)
	if stands.same(from) && !to.same(from) {
		return stands, ErrWriterSettling
	}
	return stands, nil
}

// heard is told of every key of the ledger that has another value.
func (c *Cache) heard(key, before, now string) {
	for shard := range *c.nodes.Load() {
		if w := writerIn(now); key == writerKey(shard) && !w.same(writerIn(before)) && c.cfg.OnWriter != nil {
			c.cfg.OnWriter(shard, w)
		}
	}
}

// moveWriter replaces the value of a record by to, and returns what stands
// there afterwards; guarded: not within life of the last move.
func (f *fleet) moveWriter(ctx context.Context, shard, value string, to Writer, guarded bool) (string, error) {
	guard := int64(0)
	if guarded {
		guard = f.ttl.Milliseconds()
	}
	stands, err := moveWriterScript.Run(ctx, f.client, []string{writerKey(shard), movedKey(shard)}, value, to.head(), guard).Text()
	if err != nil {
		return "", err
	}
	f.hint(ctx, shard)
	return stands, nil
}

// maxWriterBytes bounds a record of a writer. Longer ones were written by
// somebody else.
const maxWriterBytes = 4 << 10

// maxEpoch is more moves than there can have been. After the last number that
// fits there would be none to count on with.
const maxEpoch = 1 << 53

// decodeWriter reads the value of a writer's key. Anything that this library
// would not have written is an error.
func decodeWriter(value string) (Writer, error) {
	if len(value) > maxWriterBytes {
		return Writer{}, fmt.Errorf("%w: %d bytes", errForeign, len(value))
	}
	var w Writer
	if err := json.Unmarshal([]byte(value), &w); err != nil {
		return Writer{}, fmt.Errorf("%w: %w", errForeign, err)
	}
	if w.Addr == "" || w.Epoch == 0 || w.Epoch > maxEpoch {
		return Writer{}, fmt.Errorf("%w: no address, or epoch %d", errForeign, w.Epoch)
	}
	return w, nil
}

// writerIn is the record that a value holds; the zero Writer where it holds none.
func writerIn(value string) Writer {
	w, err := decodeWriter(value)
	if err != nil {
		return Writer{}
	}
	return w
}

// encode is a whole record, for an instance that stands alone.
func (w Writer) encode() string {
	return w.head() + `,"since":"` + w.Since.UTC().Format(timeLayout) + `"}`
}

// head is a record without its date, which the script adds: everything up to
// where the closing brace would stand.
func (w Writer) head() string {
	w.Reason, w.Since = clip(w.Reason), time.Time{}
	// Strings and integers always encode.
	text, _ := json.Marshal(w)
	return string(text[:len(text)-1])
}

// same reports whether two records name the same node in the same epoch, and as
// firmly.
func (w Writer) same(o Writer) bool {
	return w.Addr == o.Addr && w.Server == o.Server && w.Epoch == o.Epoch && w.From == o.From
}
