package shardrouter

import (
	"strconv"
	"strings"
)

// position is how far a server's history goes: for each source of transactions
// the numbers that it has. MariaDB names a domain and its last number
// (0-1-100), MySQL a server's UUID and ranges (uuid:1-5:7).
type position map[string][]span

// span is a range of transaction numbers, both ends included, and in MariaDB the
// server that wrote the last one.
type span struct {
	from, to uint64
	server   string
}

// parsePosition reads a GTID position of either server; false for an empty one
// and for what neither would write.
func parsePosition(text string) (position, bool) {
	p := position{}
	for part := range strings.SplitSeq(text, ",") {
		read := p.addMariaDB
		if strings.Contains(part, ":") {
			read = p.addMySQL
		}
		if !read(strings.TrimSpace(part)) {
			return nil, false
		}
	}
	return p, true
}

// addMariaDB reads domain-server-number. A domain is to have one history, which
// its last number tells. Two servers that wrote the same number have parted.
func (p position) addMariaDB(part string) bool {
	fields := strings.Split(part, "-")
	if len(fields) != 3 {
		return false
	}
	last, err := strconv.ParseUint(fields[2], 10, 64)
	if err != nil {
		return false
	}
	p[fields[0]] = append(p[fields[0]], span{1, last, fields[1]})
	return true
}

// addMySQL reads uuid:from-to:from-to.
func (p position) addMySQL(part string) bool {
	fields := strings.Split(part, ":")
	for _, text := range fields[1:] {
		from, to, ranged := strings.Cut(text, "-")
		if !ranged {
			to = from
		}
		first, err := strconv.ParseUint(from, 10, 64)
		if err != nil {
			return false
		}
		last, err := strconv.ParseUint(to, 10, 64)
		if err != nil {
			return false
		}
		p[fields[0]] = append(p[fields[0]], span{from: first, to: last})
	}
	return true
}

// holds reports whether p has every transaction of o.
func (p position) holds(o position) bool {
	for source, spans := range o {
		for _, s := range spans {
			if !p.has(source, s) {
				return false
			}
		}
	}
	return true
}

func (p position) has(source string, s span) bool {
	for _, mine := range p[source] {
		if mine.from <= s.from && s.to <= mine.to && (s.to < mine.to || s.server == mine.server) {
			return true
		}
	}
	return false
}

// ahead reports whether the position x has everything that y has, and more. It
// is false where one of them says nothing, and where each has something that
// the other lacks.
func ahead(x, y string) bool {
	px, ok := parsePosition(x)
	if !ok {
		return false
	}
	py, ok := parsePosition(y)
	return ok && px.holds(py) && !py.holds(px)
}

// lacks reports whether the position x is known to lack something that y has.
func lacks(x, y string) bool {
	px, ok := parsePosition(x)
	if !ok {
		return false
	}
	py, ok := parsePosition(y)
	return ok && !px.holds(py)
}
