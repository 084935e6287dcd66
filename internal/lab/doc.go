// Package lab runs real servers for tests: mariadbd, alone, with a standby or as a Galera
// cluster, and redis-server, alone, with TLS, as a cluster or under sentinels.
// Each has a loopback port and a folder of its own, and can be stopped, killed,
// frozen, thawed and started again on the same port with the data that its
// folder holds.
//
//	db := lab.MariaDB(t)
//	lab.Exec(t, db.DSN(), "CREATE TABLE players (id INT PRIMARY KEY)")
//	db.Freeze() // sockets stay open, nothing answers
//
// # States
//
//	          Start              Freeze
//	stopped ─────────► running ──────────► frozen
//	   ▲  ▲               │ ▲                │ │
//	   │  └── Stop, Kill ─┘ └───── Thaw ─────┘ │
//	   └───────────── Stop, Kill ──────────────┘
//
// The operating system is authoritative: a server that ends by itself is
// stopped, and the log of a server that does not come up is in the test's
// failure.
//
// # How servers end
//
// A cleanup of the test thaws and kills each server, waits for it and removes
// its folder. A test binary that dies first, by a panic, by the timeout of go
// test or by a signal, runs no cleanup, and a death signal does not reach a
// mariadbd that changes its user. So a small shell beside each server reads
// from a pipe whose other end only the test binary holds. The end of the pipe
// is the end of the binary, however it died; the shell then kills the server
// and removes its folder. Servers and shells are in process groups of their
// own, so that an interrupt on the terminal reaches the binary alone.
//
// # Ports
//
// [FreePort] takes ports from below the range that the kernel gives to
// outgoing connections, and holds a file lock on each until the test ends. So
// a stopped server's port is not taken by anybody else before it starts again,
// and a dial to it never connects to itself.
//
// # Data folders
//
// A MariaDB data folder is prepared once for each user and version of
// mariadbd, in a cache under [os.TempDir] that a file lock guards, and copied
// for every server. It holds the database game and two accounts: app, which
// owns that database and nothing else, so that read_only binds it, and root.
//
// # Galera
//
// A cluster's usual start takes a node at a time and a state transfer for each
// but the first. Here all nodes start at once from copies of one data folder
// that has a cluster's identity, and each is given the saved view of a cluster
// in which all of them were. They take that cluster up again as after a power
// failure, which needs no transfer: three nodes are up in about three seconds.
// A killed node is asked for the position of its data first, so that it
// fetches what it missed, about five seconds, and no other node is blocked by
// copying its folder. A dead or frozen member stops the others' writes for two
// to five seconds, until they evict it; one that thaws then joins again by
// itself.
//
// # A primary and its standby
//
// [MariaDBPair] starts two servers of which the second replicates from the
// first, by GTID. [Pair.Switchover] changes their roles as an operator would;
// after a crash of the primary [Pair.Promote] ends the standby's replication.
// With [SemiSync] the primary commits nothing that its standby has not got.
//
// # Redis in company
//
// [RedisCluster] introduces its nodes over cluster buses on free ports. It is
// up after two seconds, before which Redis lets no new cluster write.
// [RedisSentinel] writes to each sentinel's file what the sentinels would learn
// of each other within some rounds, so that a failover can begin after a second;
// it takes about two.
//
// The package needs Linux, and on Debian
//
//	apt-get install -y mariadb-server redis-server rsync
package lab
