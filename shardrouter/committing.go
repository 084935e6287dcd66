package shardrouter

import "strings"

// breaksTransaction reports whether a statement, or one of several where the
// connection takes several, ends the transaction in which it stands; so does
// what cannot be read for certain. What a procedure does cannot be seen.
func breaksTransaction(query string, several bool) bool {
	return anyStatement(query, several, (*sqlScanner).endsTransaction)
}

// mayCommit reports whether a statement may end the transaction in which it
// stands without saying so: a procedure, and what breaksTransaction refuses.
func mayCommit(query string, several bool) bool {
	return anyStatement(query, several, func(sc *sqlScanner) bool {
		at := sc.i
		switch upper(sc.word()) {
		case "CALL", "EXECUTE":
			return true
		}
		sc.i = at
		return sc.endsTransaction()
	})
}

// anyStatement reports whether is holds of one of the statements of query, or
// whether they cannot be told apart. is gets the scanner at the beginning of
// each of them and may go on in it.
func anyStatement(query string, several bool, is func(*sqlScanner) bool) bool {
	sc := sqlScanner{s: query}
	for {
		if is(&sc) || sc.hidden {
			return true
		}
		if !several {
			return false
		}
		more := sc.skipStatement()
		switch {
		case sc.hidden, sc.backslash: // where the quotes end hangs on the SQL mode
			return strings.IndexByte(query, ';') >= 0
		case !more:
			return false
		}
	}
}

// endsTransaction looks at the words that follow, up to those that decide. A
// comment that some servers execute may hide the first.
func (sc *sqlScanner) endsTransaction() bool {
	switch upper(sc.keyword()) {
	case "BEGIN", "START", "STOP", "COMMIT", "XA", "ALTER", "TRUNCATE", "RENAME", "GRANT", "REVOKE", "LOCK",
		"UNLOCK", "ANALYZE", "OPTIMIZE", "REPAIR", "CHECK", "FLUSH", "RESET", "INSTALL", "UNINSTALL", "CHANGE", "CACHE":
		return true
	case "ROLLBACK":
		word := upper(sc.keyword())
		if word == "WORK" {
			word = upper(sc.keyword())
		}
		return word != "TO" // a savepoint
	case "CREATE", "DROP":
		return upper(sc.keyword()) != "TEMPORARY"
	case "SET":
		return sc.setsTransaction()
	}
	return false
}

// setsTransaction reports whether a SET ends the transaction: that of
// autocommit or a password, and SET STATEMENT … FOR what does.
func (sc *sqlScanner) setsTransaction() bool {
	rest := strings.ToUpper(sc.s[sc.i:])
	if strings.Contains(rest, "AUTOCOMMIT") {
		return true
	}
	at := sc.i
	switch upper(sc.keyword()) {
	case "PASSWORD":
		return true
	case "STATEMENT":
		for word, symbol := sc.next(); word != "" || symbol != 0 && symbol != ';'; word, symbol = sc.next() {
			if strings.EqualFold(word, "FOR") {
				return sc.endsTransaction()
			}
		}
	}
	sc.i = at
	return false
}

// keyword returns the next word, unless a statement ends before it.
func (sc *sqlScanner) keyword() string {
	at := sc.i
	word := sc.word()
	if word == "" {
		sc.i = at
	}
	return word
}

// skipStatement passes over the rest of a statement, and reports whether
// another one follows.
func (sc *sqlScanner) skipStatement() bool {
	for {
		word, symbol := sc.next()
		switch {
		case word == "" && symbol == 0:
			return false
		case symbol == ';':
			at := sc.i
			word, symbol = sc.next()
			more := word != "" || symbol != 0
			sc.i = at
			return more
		}
	}
}
