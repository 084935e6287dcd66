package scriptserver

import "encoding/binary"

// Answer is what the server does when it has got a statement.
type Answer func(c *conn)

// OK is the answer to a statement without a result.
func OK() Answer {
	return func(c *conn) { c.packet([]byte{okHeader, 0, 0, statusAutocommit, 0, 0, 0}) }
}

// Err refuses the statement with an error's number.
func Err(number uint16, message string) Answer {
	return func(c *conn) {
		body := binary.LittleEndian.AppendUint16([]byte{errHeader}, number)
		c.packet(append(append(body, "#HY000"...), message...))
	}
}

// Rows is a result whose columns and values are all text.
func Rows(columns []string, rows ...[]string) Answer {
	return func(c *conn) {
		c.packet([]byte{byte(len(columns))})
		for _, name := range columns {
			c.packet(column(name))
		}
		c.packet(eof())
		for _, row := range rows {
			c.packet(c.row(row))
		}
		c.packet(eof())
	}
}

// Packet sends a packet of these bytes, whatever they mean.
func Packet(body ...byte) Answer {
	return func(c *conn) { c.packet(body) }
}

// Raw sends these bytes, without so much as a packet around them.
func Raw(bytes ...byte) Answer {
	return func(c *conn) { c.write(bytes) }
}

// HangUp closes the connection.
func HangUp() Answer {
	return func(c *conn) { c.over = true }
}

// After waits until done is closed, and answers then.
func After(done <-chan struct{}, a Answer) Answer {
	return func(c *conn) {
		<-done
		a(c)
	}
}

// Silence answers nothing, now or later, and keeps the connection open.
func Silence() Answer {
	return func(c *conn) { c.mute = true }
}

// All gives several answers, one after the other.
func All(answers ...Answer) Answer {
	return func(c *conn) {
		for _, a := range answers {
			a(c)
		}
	}
}

// column defines a column of text.
func column(name string) []byte {
	var b []byte
	for _, s := range []string{"def", "", "", "", name, name} {
		b = append(b, text(s)...)
	}
	const charset, length, varString = 45, 255, 0xfd // utf8mb4_general_ci
	return append(b, 0x0c, charset, 0, length, 0, 0, 0, varString, 0, 0, 0, 0, 0)
}

// row encodes one row as the present statement needs it.
func (c *conn) row(values []string) []byte {
	var b []byte
	if c.prepared { // the header, and a bitmap of NULLs that has none
		b = make([]byte, 1+(len(values)+7+2)/8)
	}
	for _, v := range values {
		b = append(b, text(v)...)
	}
	return b
}

// text is a string behind its length, of less than 251 bytes.
func text(s string) []byte { return append([]byte{byte(len(s))}, s...) }

func eof() []byte { return []byte{eofHeader, 0, 0, statusAutocommit, 0} }
