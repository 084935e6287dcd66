package shardrouter

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// MarkerDDL makes the table of markers, which CopiesMarker needs. The library
// makes it by itself in the database that the DSN names, where its account may
// create tables; elsewhere an operator does. It holds one row for each shard.
const MarkerDDL = "CREATE TABLE IF NOT EXISTS " + markerTableName + markerColumns

const (
	markerTableName = "shardhop_markers"
	markerColumns   = ` (
	shard VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
	marker BINARY(16) NOT NULL,
	written BIGINT NOT NULL
) ENGINE=InnoDB`
)

// marker is what a shard writes into its own row, new at every look.
type marker [16]byte

// errNoDatabase: the library's tables have no place.
var errNoDatabase = errors.New("the DSN names no database")

// markerConn is a connection of one look's own, to the node of a shard that takes
// the writes. Nothing of a player's runs on it.
type markerConn struct {
	*serverConn
	shard string
	table string // quoted, with its database
}

// markerConn opens a connection for a look.
func (p *pool) markerConn(ctx context.Context) (*markerConn, error) {
	if p.markers == "" {
		return nil, errNoDatabase
	}
	w := p.connector.writer.Load()
	if w == nil {
		return nil, errNoWriter
	}
	conn, err := w.node.connect(ctx, p.era.Load())
	if err != nil {
		return nil, err
	}
	if err := conn.closeTransactions(ctx, w.node.leavesOpen.Load()); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &markerConn{conn, p.name, p.markers}, nil
}

// write writes the shard's own marker, and makes the table where there is none.
// The shard's name is of letters, digits and underscores.
func (c *markerConn) write(ctx context.Context, m marker) error {
	set := fmt.Sprintf("REPLACE INTO %s (shard, marker, written) VALUES ('%s', x'%x', UNIX_TIMESTAMP())", c.table, c.shard, m)
	_, err := c.ExecContext(ctx, set, nil)
	if !hasNumber(err, erNoSuchTable) {
		return err
	}
	if _, err := c.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS "+c.table+markerColumns, nil); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, set, nil)
	return err
}

// read returns of each shard whether the marker that stands there is the one that
// it has just written. It asks once: a marker that comes later proves nothing.
func (c *markerConn) read(ctx context.Context, written map[string]marker) (map[string]bool, error) {
	const most = 1 << 12 // more shards than a group has
	rows, err := queryRows(ctx, c, "SELECT shard, HEX(marker) FROM "+c.table, 2, most)
	if err != nil {
		return nil, err
	}
	shows := make(map[string]bool, len(rows))
	for _, row := range rows {
		m, ok := written[text(row[0])]
		shows[text(row[0])] = ok && strings.EqualFold(text(row[1]), hex.EncodeToString(m[:]))
	}
	return shows, nil
}

// refused reports whether a shard will not take or show a marker, though it is
// there: it is nobody's copy. One that is gone, full or read-only has not said so.
func refused(err error) bool {
	if errors.Is(err, errNoDatabase) {
		return true
	}
	v := classify(err, occasion{phase: phaseStatement})
	return err != nil && answered(err) && (v == VerdictStatement || v == VerdictMisconfigured)
}
