package shardrouter

import "strings"

// onlyReads reports whether a statement provably changes nothing, whatever the
// SQL mode and the character set of its connection: a single SELECT, SHOW or DO
// of tables and of built-in functions that only compute. It errs on the safe side:
// what it does not know, or could read in two ways, counts as a write.
//
// What a view calls cannot be seen here.
func onlyReads(query string) bool {
	if !plainText(query) {
		return false
	}
	sc := readScanner{sqlScanner: sqlScanner{s: query}}
	switch upper(sc.word()) {
	case "SELECT", "WITH", "DO":
	case "EXPLAIN", "DESCRIBE", "DESC":
		if upper(sc.word()) != "SELECT" {
			return false
		}
	case "SHOW":
		if !readableShow.has(sc.word()) {
			return false
		}
	default:
		return false
	}
	return sc.rest()
}

// plainText refuses what a server may read in two ways wherever it stands: a
// backslash, which escapes or does not; control characters; and hints, in which
// quotes hide the end of a comment.
func plainText(query string) bool {
	for i := range len(query) {
		c := query[i]
		if c == '\\' || c == 0x7f || c < ' ' && c != '\t' && c != '\n' && c != '\r' {
			return false
		}
	}
	return !strings.Contains(query, "/*+")
}

// readScanner goes through a statement and stops at what is not known to read.
type readScanner struct {
	sqlScanner
	before byte // the token before the present one: a symbol, or 0 for a word
}

// rest reports whether everything up to the end of the statement only reads.
func (sc *readScanner) rest() bool {
	for {
		word, symbol := sc.next()
		switch {
		case sc.hidden || sc.open:
			return false
		case word == "" && symbol == 0:
			return true
		case symbol == ';':
			word, symbol = sc.next()
			return word == "" && symbol == 0 && !sc.hidden && !sc.open
		case word != "" && !sc.readsWord(word), symbol != 0 && !sc.readsSymbol(symbol):
			return false
		}
		sc.before = symbol
	}
}

// readsSymbol reports whether a symbol may stand in a statement that reads. A
// colon may assign a variable, braces and square brackets quote in some modes
// only, and one @ belongs to a variable of the session.
func (sc *readScanner) readsSymbol(symbol byte) bool {
	switch symbol {
	case '@':
		system := sc.at('@')
		sc.i++
		return system
	case '`':
		return ascii(sc.s[sc.from:sc.i]) && !sc.bracketNext()
	case '"', '\'':
		// No character of any set that a client may use ends in one of these.
		return !sc.bracketNext()
	}
	return strings.IndexByte("(),.*+-/%<>=!?|&^~", symbol) >= 0
}

// readsWord reports whether a word may stand where it stands: no keyword that
// locks, writes or stores, and, before a bracket, a function or a keyword that
// is known. A blank between the two makes a stored function of some built-in
// ones, and so does the name of a database.
func (sc *readScanner) readsWord(word string) bool {
	called := sc.at('(')
	switch {
	case !ascii(word), strings.IndexByte(word, '$') >= 0:
		return false
	case writingWords.has(word):
		return called && sc.before != '.' && strings.EqualFold(word, "REPLACE")
	case !called && !sc.bracketNext():
		return true
	case sc.before == '.':
		return false
	case strings.EqualFold(word, "OVER"):
		return sc.before == ')'
	}
	return bracketWords.has(word) || called && readingFunctions.has(word)
}

// at reports whether c is the next byte.
func (sc *sqlScanner) at(c byte) bool { return sc.i < len(sc.s) && sc.s[sc.i] == c }

// bracketNext reports whether the next token is an opening bracket.
func (sc *readScanner) bracketNext() bool {
	sc.skipBlank()
	return sc.at('(')
}

// ascii reports whether text has no byte that a multi-byte character set could
// join with the next one.
func ascii(text string) bool {
	for i := range len(text) {
		if text[i] >= 0x80 {
			return false
		}
	}
	return true
}
