package shardrouter

import "strings"

// wordSet holds keywords and names of functions in upper case.
type wordSet struct {
	words map[string]struct{}
	// initials has, for every length of a word, a bit for each first letter, so
	// that most words are known not to be in the set without being looked up.
	initials [longestWord + 1]uint32
}

const longestWord = len("JSON_CONTAINS_PATH")

func setOf(words string) *wordSet {
	s := &wordSet{words: make(map[string]struct{})}
	for _, w := range strings.Fields(words) {
		s.words[w] = struct{}{}
		s.initials[len(w)] |= initial(w)
	}
	return s
}

func initial(word string) uint32 { return 1 << (word[0] & 0x1f) }

// has reports whether word, in upper or lower case, is in the set.
func (s *wordSet) has(word string) bool {
	if word == "" || len(word) > longestWord || s.initials[len(word)]&initial(word) == 0 {
		return false
	}
	var folded [longestWord]byte
	for i := range len(word) {
		folded[i] = word[i]
		if 'a' <= word[i] && word[i] <= 'z' {
			folded[i] -= 'a' - 'A'
		}
	}
	_, ok := s.words[string(folded[:len(word)])]
	return ok
}

var (
	// readableShow may follow SHOW.
	readableShow = setOf(`
		COLLATION COLUMNS CREATE DATABASES ENGINES ERRORS FIELDS FULL GLOBAL GRANTS
		INDEX INDEXES KEYS PROCESSLIST SCHEMAS SESSION STATUS TABLE TABLES VARIABLES
		WARNINGS`)

	// writingWords make a statement that starts as a read lock, store or write.
	// FOR stands before UPDATE and SHARE, and in NEXT VALUE FOR a sequence.
	writingWords = setOf(`
		ANALYSE ANALYZE CALL CURRVAL DELETE DO FOR HANDLER INSERT INTO LASTVAL LOAD LOCK
		NEXTVAL PROCEDURE REPLACE RETURNING SETVAL UPDATE`)

	// bracketWords are reserved by every server, so none of them is the name of a
	// stored function, and what they put before a bracket is none.
	bracketWords = setOf(`
		ALL AND AS BETWEEN BINARY BY CASE CHAR DECIMAL DISTINCT DIV ELSE EXISTS FROM
		HAVING IN INDEX INTERVAL JOIN KEY LIKE LIMIT MOD NOT ON OR REGEXP RLIKE SELECT
		THEN UNION USING VALUES WHEN WHERE XOR`)

	// readingFunctions compute, and change nothing on the server or the
	// connection. MariaDB since 10.5 and MySQL since 8.0 have all of them, and no
	// stored function can take the place of one. Those that take locks, set
	// what a later call returns, count a sequence up or read files are left out.
	readingFunctions = setOf(`
		ABS ACOS ADDDATE ADDTIME AES_DECRYPT AES_ENCRYPT ASCII ASIN ATAN ATAN2 AVG
		BIN BIT_AND BIT_COUNT BIT_LENGTH BIT_OR BIT_XOR
		CAST CEIL CEILING CHAR CHARACTER_LENGTH CHARSET CHAR_LENGTH COALESCE COERCIBILITY
		COLLATION COMPRESS CONCAT CONCAT_WS CONNECTION_ID CONV CONVERT CONVERT_TZ COS COT
		COUNT CRC32 CUME_DIST CURDATE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP
		CURRENT_USER CURTIME
		DATABASE DATE DATEDIFF DATE_ADD DATE_FORMAT DATE_SUB DAY DAYNAME DAYOFMONTH
		DAYOFWEEK DAYOFYEAR DEGREES DENSE_RANK
		ELT EXP EXPORT_SET EXTRACT
		FIELD FIND_IN_SET FIRST_VALUE FLOOR FORMAT FOUND_ROWS FROM_BASE64 FROM_DAYS
		FROM_UNIXTIME
		GET_FORMAT GREATEST GROUP_CONCAT
		HEX HOUR
		IF IFNULL INET6_ATON INET6_NTOA INET_ATON INET_NTOA INSTR ISNULL
		JSON_ARRAY JSON_ARRAYAGG JSON_ARRAY_APPEND JSON_ARRAY_INSERT JSON_CONTAINS
		JSON_CONTAINS_PATH JSON_DEPTH JSON_EXTRACT JSON_INSERT JSON_KEYS JSON_LENGTH
		JSON_MERGE_PATCH JSON_OBJECT JSON_OBJECTAGG JSON_QUOTE JSON_REMOVE JSON_REPLACE
		JSON_SEARCH JSON_SET JSON_TYPE JSON_UNQUOTE JSON_VALID JSON_VALUE
		LAG LAST_DAY LAST_VALUE LCASE LEAD LEAST LEFT LENGTH LN LOCALTIME LOCALTIMESTAMP
		LOCATE LOG LOG10 LOG2 LOWER LPAD LTRIM
		MAKEDATE MAKETIME MAKE_SET MAX MD5 MICROSECOND MID MIN MINUTE MOD MONTH MONTHNAME
		NOW NTH_VALUE NTILE NULLIF
		OCT OCTET_LENGTH ORD
		PERCENT_RANK PERIOD_ADD PERIOD_DIFF PI POSITION POW POWER
		QUARTER QUOTE
		RADIANS RAND RANK REPEAT REPLACE REVERSE RIGHT ROUND ROW_COUNT ROW_NUMBER RPAD RTRIM
		SCHEMA SECOND SEC_TO_TIME SESSION_USER SHA SHA1 SHA2 SIGN SIN SLEEP SOUNDEX SPACE
		SQRT STD STDDEV STDDEV_POP STDDEV_SAMP STRCMP STR_TO_DATE SUBDATE SUBSTR SUBSTRING
		SUBSTRING_INDEX SUBTIME SUM SYSDATE SYSTEM_USER
		TAN TIME TIMEDIFF TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TIME_FORMAT TIME_TO_SEC
		TO_BASE64 TO_DAYS TO_SECONDS TRIM TRUNCATE
		UCASE UNCOMPRESS UNHEX UNIX_TIMESTAMP UPPER USER UTC_DATE UTC_TIME UTC_TIMESTAMP UUID
		VARIANCE VAR_POP VAR_SAMP VERSION
		WEEK WEEKDAY WEEKOFYEAR
		YEAR YEARWEEK`)
)
