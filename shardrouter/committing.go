package shardrouter

import "strings"

// breaksTransaction reports whether a statement, or one of several where the
// connection takes several, ends the transaction in which it stands; so does
// what cannot be read for certain. What a procedure does is seen behind it; see
// stillIn.
func breaksTransaction(query string, several bool) bool {
	return anyStatement(query, several, (*sqlScanner).endsTransaction)
}

// insideWords begin the statements of which is known that they stay inside a
// transaction, but for those that endsTransaction tells from them. Procedures are
// none of them, nor are the blocks, loops and labels that MariaDB takes outside of
// procedures.
var insideWords = setOf(`
	CHECKSUM CREATE DEALLOCATE DELETE DESC DESCRIBE DO DROP EXPLAIN GET HANDLER HELP
	INSERT KILL LOAD PREPARE RELEASE REPLACE RESIGNAL ROLLBACK SAVEPOINT SELECT SET
	SHOW SIGNAL TABLE UPDATE USE VALUES WITH`)

// mayCommit reports whether a statement may end the transaction in which it
// stands without saying so: one that is not known to stay inside of it, and what
// breaksTransaction refuses.
func mayCommit(query string, several bool) bool {
	return anyStatement(query, several, func(sc *sqlScanner) bool {
		sc.unwrap()
		at := sc.i
		word, symbol := sc.next()
		for symbol == '(' {
			word, symbol = sc.next()
		}
		if word != "" && !insideWords.has(word) || symbol != 0 && symbol != ';' {
			return true
		}
		sc.i = at
		return sc.endsTransaction()
	})
}

// unwrap passes over SET STATEMENT … FOR, behind which a statement stands.
func (sc *sqlScanner) unwrap() {
	for {
		at := sc.i
		if !strings.EqualFold(sc.keyword(), "SET") || !strings.EqualFold(sc.keyword(), "STATEMENT") || !sc.skipFor() {
			sc.i = at
			return
		}
	}
}

// skipFor passes over the settings up to and with FOR, and reports whether it
// was there.
func (sc *sqlScanner) skipFor() bool {
	for depth := 0; ; {
		word, symbol := sc.next()
		switch {
		case word == "" && symbol == 0, symbol == ';':
			return false
		case symbol == '(':
			depth++
		case symbol == ')':
			depth--
		case depth == 0 && strings.EqualFold(word, "FOR"):
			return true
		}
	}
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
	sc.unwrap()
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
	case "CREATE":
		return upper(sc.keyword()) != "TEMPORARY" || upper(sc.keyword()) != "TABLE" // a sequence commits
	case "DROP":
		return upper(sc.keyword()) != "TEMPORARY"
	case "LOAD":
		return upper(sc.keyword()) == "INDEX"
	case "SET":
		return sc.setsTransaction()
	}
	return false
}

// setsTransaction reports whether a SET ends the transaction: that of autocommit,
// or one that writes the tables of accounts, at whatever place of its list.
func (sc *sqlScanner) setsTransaction() bool {
	at := sc.i
	defer func() { sc.i = at }()
	rest := strings.ToUpper(sc.s[sc.i:])
	if strings.Contains(rest, "AUTOCOMMIT") {
		return true
	}
	for first, depth := true, 0; ; {
		word, symbol := sc.next()
		switch {
		case word == "" && symbol == 0, symbol == ';':
			// With a backslash in a string, the list may go on where it seems quoted.
			return sc.backslash && (strings.Contains(rest, "PASSWORD") || strings.Contains(rest, "ROLE"))
		case first && word != "" && sc.setsAccount(word):
			return true
		case symbol == '(':
			depth++
		case symbol == ')':
			depth--
		}
		first = symbol == ',' && depth == 0
	}
}

// setsAccount reports whether a setting that begins with word is that of an
// account: PASSWORD or DEFAULT ROLE, or what may be either, since a byte that is
// not ASCII is white space in some character sets.
func (sc *sqlScanner) setsAccount(word string) bool {
	at := sc.i
	defer func() { sc.i = at }()
	return !ascii(word) || strings.EqualFold(word, "PASSWORD") ||
		strings.EqualFold(word, "DEFAULT") && strings.EqualFold(sc.keyword(), "ROLE")
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
			return sc.hasNext()
		}
	}
}

// hasNext reports whether another token follows.
func (sc *sqlScanner) hasNext() bool {
	at := sc.i
	word, symbol := sc.next()
	sc.i = at
	return word != "" || symbol != 0
}
