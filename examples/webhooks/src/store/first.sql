-- A database as the first version made it, and a delivery that it owes.
CREATE TABLE versions (newest INTEGER NOT NULL) STRICT;
INSERT INTO versions VALUES (0);

CREATE TABLE subscriptions (
    id TEXT NOT NULL PRIMARY KEY,
    url TEXT NOT NULL,
    rate REAL,
    -- A version of its own, changed with the URL: what the old receiver knows is of no use.
    revision INTEGER NOT NULL
) STRICT;

CREATE TABLE objects (
    id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT
) STRICT;
CREATE INDEX deleted_objects ON objects (id) WHERE body IS NULL;

CREATE TABLE deliveries (
    subscription TEXT NOT NULL,
    object TEXT NOT NULL,
    delivered INTEGER NOT NULL DEFAULT 0,
    state TEXT CHECK (state IN ('pending', 'failed')),
    error TEXT,
    PRIMARY KEY (subscription, object)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_by_object ON deliveries (object);
CREATE INDEX owed_deliveries ON deliveries (state, subscription, object) WHERE state IS NOT NULL;

INSERT INTO subscriptions VALUES ('s', 'u', NULL, 1);
INSERT INTO objects VALUES ('a', 2, '1');
INSERT INTO deliveries (subscription, object, state) VALUES ('s', 'a', 'pending');
UPDATE versions SET newest = 2;
PRAGMA user_version = 1;
