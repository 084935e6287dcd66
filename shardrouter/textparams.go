package shardrouter

import (
	"database/sql/driver"
	"strings"
)

// textSafeFamilies are the character sets, by the beginning of their collations'
// names, in which no part of a character looks like a quote or a backslash.
var textSafeFamilies = setOf("UTF8 UTF8MB3 UTF8MB4 LATIN1 ASCII")

func isTextSafeFamily(name string) bool {
	family, _, _ := strings.Cut(name, "_")
	return textSafeFamilies.has(family)
}

// isTextSafe reports whether statements can be sent as text with their
// parameters in it: whether the character set is one in which no part of a
// character looks like a quote or a backslash. The default is.
//
// Text is what a transaction needs. A Galera member that rolls it back while a
// statement is prepared or closed says so to nobody: what follows runs outside
// of the transaction, and COMMIT is answered with OK.
func isTextSafe(params string) bool {
	for param := range strings.SplitSeq(params, "&") {
		name, value, _ := strings.Cut(param, "=")
		if name != "charset" && name != "collation" {
			if namesCharset(param) { // as a variable of the session
				return false
			}
			continue
		}
		for set := range strings.SplitSeq(value, ",") {
			if !isTextSafeFamily(set) {
				return false
			}
		}
	}
	return true
}

// namesCharset reports whether text may set the character set of a connection.
func namesCharset(text string) bool {
	lower := strings.ToLower(text)
	for _, name := range []string{"names", "charset", "character"} {
		if strings.Contains(lower, name) {
			return true
		}
	}
	return false
}

// setsForeignText reports whether a statement may give its connection a character
// set in which parameters cannot be sent as text. It errs on the safe side, but
// knows SET NAMES with a set that is safe.
func setsForeignText(query string) bool {
	if !namesCharset(query) {
		return false
	}
	sc := sqlScanner{s: query}
	if upper(sc.word()) != "SET" || upper(sc.word()) != "NAMES" {
		return true
	}
	word, symbol := sc.next()
	if symbol == '\'' {
		word = strings.Trim(sc.s[sc.from:sc.i], "'")
	}
	at := sc.i
	if strings.EqualFold(sc.keyword(), "COLLATE") {
		_, _ = sc.next()
		at = sc.i
	}
	sc.i = at
	next, symbol := sc.next()
	end := next == "" && symbol == 0 || symbol == ';' && !sc.hasNext()
	return !isTextSafeFamily(word) || !end || sc.hidden
}

// mustPrepare reports whether a statement's parameters have to be sent apart
// from it: as the DSN says, or since the quotes around them may mean something else
// to the server, in a character set that the holder has chosen, or in an SQL mode
// that an earlier one of several statements sets.
func (c *serverConn) mustPrepare(query string, args []driver.NamedValue) bool {
	return len(args) > 0 && (c.node.apart || c.foreignText || c.node.multi && strings.Contains(strings.ToLower(query), "sql_mode"))
}
