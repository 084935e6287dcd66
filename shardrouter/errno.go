package shardrouter

// The numbers of the servers' errors that decide something, by the names that
// their manuals give them.
const (
	erErrorOnWrite             = 1026 // of a log, when the transaction was prepared already
	erCheckRead                = 1020 // MariaDB: the row changed since the snapshot; the transaction is rolled back
	erConCount                 = 1040
	erOutOfResources           = 1041
	erDBAccessDenied           = 1044
	erUnknownCommand           = 1047 // Galera: the node is not ready for queries
	erBadDB                    = 1049
	erServerShutdown           = 1053
	erDupEntry                 = 1062
	erParseError               = 1064
	erNoSuchThread             = 1094
	erUnknownError             = 1105
	erHostIsBlocked            = 1129
	erHostNotPrivileged        = 1130
	erCantCreateThread         = 1135
	erTableAccessDenied        = 1142
	erNoSuchTable              = 1146
	erAbortingConnection       = 1152
	erNetPacketTooLarge        = 1153
	erNetReadError             = 1158
	erNetReadInterrupted       = 1159
	erNetErrorOnWrite          = 1160
	erNetWriteInterrupted      = 1161
	erErrorDuringCommit        = 1180
	erNewAbortingConnection    = 1184
	erUnknownVariable          = 1193
	erTooManyUserConnections   = 1203
	erLockWaitTimeout          = 1205
	erLockTableFull            = 1206 // InnoDB: no memory for locks; the transaction is rolled back
	erLockDeadlock             = 1213
	erUserLimitReached         = 1226
	erOptionPreventsStatement  = 1290
	erNoSuchFunction           = 1305
	erQueryInterrupted         = 1317
	erBinlogLoggingImpossible  = 1598
	erReadOnlyTransaction      = 1792
	erReadOnlyMode             = 1836
	erConnectionKilled         = 1927 // MariaDB
	erStatementTimeout         = 1969 // MariaDB: max_statement_time
	erOfflineMode              = 3032 // MySQL
	erHookFailed               = 3100 // MySQL: a plugin failed at COMMIT
	erRollbackDuringCommit     = 3101 // MySQL group replication: certification failed
	erSessionWasKilled         = 3169 // MySQL
	erClientInteractionTimeout = 4031 // MySQL: the connection was idle too long
)
