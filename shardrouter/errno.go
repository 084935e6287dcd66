package shardrouter

// The numbers of the servers' errors that decide something, by the names that
// their manuals give them.
const (
	erCheckRead                = 1020 // MariaDB: the row changed since the snapshot; the transaction is rolled back
	erConCount                 = 1040
	erOutOfResources           = 1041
	erUnknownCommand           = 1047 // Galera: the node is not ready for queries
	erServerShutdown           = 1053
	erHostIsBlocked            = 1129
	erHostNotPrivileged        = 1130
	erCantCreateThread         = 1135
	erAbortingConnection       = 1152
	erNetReadError             = 1158
	erNetReadInterrupted       = 1159
	erNetErrorOnWrite          = 1160
	erNetWriteInterrupted      = 1161
	erNewAbortingConnection    = 1184
	erTooManyUserConnections   = 1203
	erLockWaitTimeout          = 1205
	erLockDeadlock             = 1213
	erUserLimitReached         = 1226
	erOptionPreventsStatement  = 1290
	erQueryInterrupted         = 1317
	erReadOnlyTransaction      = 1792
	erReadOnlyMode             = 1836
	erConnectionKilled         = 1927 // MariaDB
	erOfflineMode              = 3032 // MySQL
	erRollbackDuringCommit     = 3101 // MySQL group replication: certification failed
	erSessionWasKilled         = 3169 // MySQL
	erClientInteractionTimeout = 4031 // MySQL: the connection was idle too long
)
