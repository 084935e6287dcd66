package shardrouter

import "strings"

// leavesResidue reports whether a statement may leave something behind on its
// connection that the next holder would find: a variable, a lock, a temporary
// table, an open transaction, another database. It errs on the safe side:
// what it does not know leaves residue, and costs a new connection.
//
// What a stored function changes cannot be seen here, and LAST_INSERT_ID()
// stays as every INSERT leaves it.
func leavesResidue(query string) bool {
	sc := sqlScanner{s: query}
	switch upper(sc.word()) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "VALUES", "TABLE",
		"SHOW", "EXPLAIN", "DESCRIBE", "DESC", "ALTER", "TRUNCATE", "ANALYZE", "OPTIMIZE", "CHECK":
	case "CREATE", "DROP":
		object := upper(sc.word())
		if object == "OR" && upper(sc.word()) == "REPLACE" {
			object = upper(sc.word())
		}
		switch object {
		case "", "TEMPORARY", "DATABASE", "SCHEMA": // without its database, a connection has none
			return true
		}
	default:
		return true
	}
	if sc.scanForResidue() {
		return true
	}
	// Whether a backslash escapes depends on the SQL mode and the character
	// set. With one in a string, quotes prove nothing.
	return sc.backslash && (strings.ContainsAny(query, "@;") || strings.Contains(strings.ToUpper(query), getLock))
}

const getLock = "GET_LOCK"

// sqlScanner goes through a statement token by token: words, and single bytes
// of everything else. Quoted text is one token, its quote; comments are none.
type sqlScanner struct {
	s         string
	i         int
	from      int  // where the present token begins
	backslash bool // one stood in a quoted text
	hidden    bool // a comment that some servers execute stood here
	open      bool // a quoted text or a comment never came to its end
}

// word returns the next token if it is a word, or else nothing. Opening
// brackets are passed over, as in (SELECT …) UNION (SELECT …).
func (sc *sqlScanner) word() string {
	for {
		word, symbol := sc.next()
		if symbol != '(' {
			return word
		}
	}
}

// scanForResidue looks at the rest for user variables, user locks, a second
// statement and executable comments.
func (sc *sqlScanner) scanForResidue() bool {
	for {
		word, symbol := sc.next()
		switch {
		case sc.hidden:
			return true
		case word == "" && symbol == 0:
			return false
		case symbol == '@':
			if sc.i >= len(sc.s) || sc.s[sc.i] != '@' {
				return true
			}
			sc.i++ // a system variable, which is only read here
		case symbol == ';':
			word, symbol = sc.next()
			return sc.hidden || word != "" || symbol != 0
		case namesLock(word), sc.quotesCall(symbol, getLock):
			return true
		}
	}
}

// namesLock reports whether a word may be the name of the function that takes user
// locks. A byte that is not ASCII is white space in some character sets.
func namesLock(word string) bool {
	return strings.EqualFold(word, getLock) || !ascii(word) && strings.Contains(strings.ToUpper(word), getLock)
}

// quotesCall reports whether the present token is the name of a function in
// quotes, as the server takes it in backticks, and with ANSI_QUOTES in double
// quotes, and is called.
func (sc *sqlScanner) quotesCall(symbol byte, name string) bool {
	if symbol != '`' && symbol != '"' || sc.i-sc.from != len(name)+2 || !strings.EqualFold(sc.s[sc.from+1:sc.i-1], name) {
		return false
	}
	sc.skipBlank()
	return sc.at('(') || sc.i < len(sc.s) && sc.s[sc.i] >= 0x80
}

// next returns the next word, or the next symbol; neither at the end.
func (sc *sqlScanner) next() (word string, symbol byte) {
	sc.skipBlank()
	if sc.i >= len(sc.s) {
		return "", 0
	}
	sc.from = sc.i
	for sc.i < len(sc.s) && isWordByte(sc.s[sc.i]) {
		sc.i++
	}
	if sc.i > sc.from {
		return sc.s[sc.from:sc.i], 0
	}
	symbol = sc.s[sc.i]
	if symbol == '\'' || symbol == '"' || symbol == '`' {
		sc.skipQuoted(symbol)
	} else {
		sc.i++
	}
	return "", symbol
}

// skipBlank passes over white space and comments.
func (sc *sqlScanner) skipBlank() {
	for sc.i < len(sc.s) {
		rest := sc.s[sc.i:]
		switch {
		case rest[0] <= ' ':
			sc.i++
		case rest[0] == '#', strings.HasPrefix(rest, "--") && (len(rest) == 2 || rest[2] <= ' ' || rest[2] > '~'):
			// Which bytes outside of ASCII begin a comment depends on the character set.
			sc.hidden = sc.hidden || rest[0] == '-' && len(rest) > 2 && rest[2] > '~'
			sc.skipPast("\n")
		case strings.HasPrefix(rest, "/*"):
			sc.hidden = sc.hidden || strings.HasPrefix(rest, "/*!") || strings.HasPrefix(rest, "/*M!")
			sc.i += len("/*")
			sc.open = !sc.skipPast("*/") || sc.open
			sc.hidden = sc.hidden || hidesItsEnd(rest[:len(rest)-len(sc.s)+sc.i])
		default:
			return
		}
	}
}

// hidesItsEnd reports whether a comment is a hint in which a quote is open where the
// comment seems to end: in MySQL it goes on behind that.
func hidesItsEnd(comment string) bool {
	if !strings.HasPrefix(comment, "/*+") {
		return false
	}
	for _, quote := range []string{"`", `"`, "'"} {
		if strings.Count(comment, quote)%2 != 0 {
			return true
		}
	}
	return false
}

// skipPast passes over everything up to and with end, and reports whether end
// was there.
func (sc *sqlScanner) skipPast(end string) bool {
	at := strings.Index(sc.s[sc.i:], end)
	if at < 0 {
		sc.i = len(sc.s)
		return false
	}
	sc.i += at + len(end)
	return true
}

// skipQuoted passes over a quoted text. A doubled quote looks like two texts
// side by side, which comes to the same.
func (sc *sqlScanner) skipQuoted(quote byte) {
	for sc.i++; sc.i < len(sc.s); sc.i++ {
		switch sc.s[sc.i] {
		case quote:
			sc.i++
			return
		case '\\':
			if quote != '`' {
				sc.backslash = true
				sc.i++
			}
		}
	}
	sc.i, sc.open = len(sc.s), true
}

func isWordByte(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c >= 0x80
}

// upper returns a keyword in upper case; what is longer than every keyword that
// matters comes back empty.
func upper(word string) string {
	if len(word) > len("TEMPORARY") {
		return ""
	}
	return strings.ToUpper(word)
}
