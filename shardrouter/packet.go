package shardrouter

import (
	"context"
	"database/sql/driver"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
)

// A server reads of a statement that is larger than its max_allowed_packet the
// length alone. It answers 1153 and closes, and whoever is still writing sees no
// more of that than a connection reset, like that of a server that died. So the
// driver is given the limit that the server told of itself, and refuses such a
// statement before anything is sent; one with parameters it prepares then, and
// sends each of them by itself.

// packetOverhead is what a server may count to a statement besides its text: the
// byte of the command, and with compression the header of four.
const packetOverhead = 5

// packetLimit is how large the statements of connections to one node may be.
type packetLimit struct {
	own  int          // what the DSN says, or the driver; 0: the driver asks the server
	told atomic.Int64 // max_allowed_packet of the server when it was last asked; 0: not told
}

// largest is the limit in bytes for a connection that is made now.
func (p *packetLimit) largest() int {
	told := int(p.told.Load())
	if p.own == 0 || told <= packetOverhead {
		return p.own
	}
	return min(p.own, told-packetOverhead)
}

// prepare is what the driver calls with the configuration of a connection that it
// is about to make. Like ownConfig, it has the driver give each one its own.
func (p *packetLimit) prepare(ctx context.Context, cfg *mysql.Config) error {
	cfg.MaxAllowedPacket = p.largest()
	if slot, ok := ctx.Value(wireSlotKey{}).(*wireSlot); ok {
		slot.limit = cfg.MaxAllowedPacket
	}
	return nil
}

// outdated reports whether the connection was made with another limit than its
// server has told since, as the first one to it is.
func (c *serverConn) outdated() bool { return c.limit != c.node.packets.largest() }

// outgrownBy reports whether a text is too large to be prepared, which the driver
// would call a lost connection.
func (c *serverConn) outgrownBy(query string) bool {
	limit := c.limit
	if limit == 0 { // the driver has asked, and keeps the answer to itself
		limit = int(c.node.packets.told.Load()) - packetOverhead
	}
	return limit > 0 && len(query) >= limit
}

// tooLarge reports whether err refuses a statement for its size, so that none of
// it ran: by the driver, by the server (1153), or by the server for one parameter
// of a prepared statement, for which it has no number of its own.
func tooLarge(err error) bool {
	answer, answered := errors.AsType[*mysql.MySQLError](err)
	switch {
	case !answered:
		return errors.Is(err, mysql.ErrPktTooLarge)
	case answer.Number == erNetPacketTooLarge:
		return true
	}
	return answer.Number == erUnknownError && strings.Contains(answer.Message, "mysql_send_long_data")
}

// askPacket is for the value of the session, which stays for its life.
var askPacket = question{"@@max_allowed_packet", func(in *introduction, v driver.Value) {
	in.packet, _ = strconv.ParseInt(text(v), 10, 64) // 0: not told
}}
