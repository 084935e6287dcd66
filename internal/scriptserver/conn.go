package scriptserver

import (
	"encoding/binary"
	"io"
	"net"
	"strings"
)

// The first bytes of packets, and of what clients send.
const (
	okHeader  = 0x00
	errHeader = 0xff
	eofHeader = 0xfe

	comQuit         = 0x01
	comQuery        = 0x03
	comStmtPrepare  = 0x16
	comStmtExecute  = 0x17
	comStmtSendLong = 0x18
	comStmtClose    = 0x19

	statusAutocommit = 0x02
)

// The capabilities that the greeting names: long passwords, found rows, long
// flags, connecting with a database, protocol 4.1, transactions, secure
// connections, several statements and results, authentication by plugin.
const capabilities = 0x1 | 0x2 | 0x4 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x10000 | 0x20000 | 0x80000

// conn is one connection; it belongs to its goroutine.
type conn struct {
	net.Conn
	server *Server
	id     uint32

	statements []string // by their number less one
	prepared   bool     // the present statement is
	sequence   byte     // of the next packet
	mute, over bool
}

// serve answers until one of the two sides ends the connection.
func (c *conn) serve() {
	defer c.Close()
	c.packet(c.greeting())
	if _, err := c.read(); err != nil {
		return
	}
	OK()(c)
	for !c.over {
		command, err := c.read()
		if err != nil || len(command) == 0 || command[0] == comQuit {
			return
		}
		c.dispatch(command[0], command[1:])
	}
}

func (c *conn) greeting() []byte {
	const half, rest = "saltsalt", "saltsaltsalt"
	b := append([]byte{10}, "8.0.0-scripted\x00"...)
	b = binary.LittleEndian.AppendUint32(b, c.id)
	b = append(b, half+"\x00"...)
	b = binary.LittleEndian.AppendUint16(b, capabilities&0xffff)
	b = append(b, 45, statusAutocommit, 0)
	b = binary.LittleEndian.AppendUint16(b, capabilities>>16)
	b = append(b, byte(len(half)+len(rest)+1))
	b = append(b, make([]byte, 10)...)
	return append(b, rest+"\x00mysql_native_password\x00"...)
}

func (c *conn) dispatch(command byte, body []byte) {
	switch command {
	case comQuery:
		c.run(string(body), false)
	case comStmtPrepare:
		c.prepare(string(body))
	case comStmtExecute:
		c.run(c.statements[binary.LittleEndian.Uint32(body)-1], true)
	case comStmtSendLong, comStmtClose: // not answered
	default:
		c.answer(OK())
	}
}

func (c *conn) run(statement string, prepared bool) {
	c.prepared = prepared
	c.answer(c.server.got(c.id, statement))
}

// prepare takes a statement, with a parameter for each question mark.
func (c *conn) prepare(statement string) {
	c.statements = append(c.statements, statement)
	params := strings.Count(statement, "?")
	c.answer(func(c *conn) {
		b := binary.LittleEndian.AppendUint32([]byte{okHeader}, uint32(len(c.statements)))
		c.packet(append(b, 0, 0, byte(params), 0, 0, 0, 0))
		for range params {
			c.packet(column("?"))
		}
		if params > 0 {
			c.packet(eof())
		}
	})
}

func (c *conn) answer(a Answer) {
	if !c.mute {
		a(c)
	}
}

// read reads a packet of the client.
func (c *conn) read() ([]byte, error) {
	var header [4]byte
	if _, err := io.ReadFull(c, header[:]); err != nil {
		return nil, err
	}
	c.sequence = header[3] + 1
	body := make([]byte, int(header[0])|int(header[1])<<8|int(header[2])<<16)
	_, err := io.ReadFull(c, body)
	return body, err
}

// packet sends a packet of less than 64 KiB.
func (c *conn) packet(body []byte) {
	c.write(append([]byte{byte(len(body)), byte(len(body) >> 8), 0, c.sequence}, body...))
	c.sequence++
}

// write ends the connection if it cannot send: the client has left.
func (c *conn) write(b []byte) {
	if _, err := c.Write(b); err != nil {
		c.over = true
	}
}
