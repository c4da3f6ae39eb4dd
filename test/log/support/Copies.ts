/** Makes SQLite leave copies of deleted rows in unused bytes of its pages. */
import type Sqlite from "better-sqlite3"

export const secret = "the heron stood in the meadow"

export const numbers = (seed: number) => {
  let state = seed
  return () => (state = (state * 1_103_515_245 + 12_345) & 0x7fff_ffff) / 0x7fff_ffff
}

/** Rows of two kinds in a seeded order. Deleting one kind leaves up to ten copies for each of these seeds. */
const seeds = [3, 4, 8, 9, 10]

/** Adds a table, and deletes those of its rows that hold the secret. */
export const leaveCopies = (db: Sqlite.Database): void => {
  db.pragma("secure_delete = ON")
  db.exec("CREATE TABLE note (key INTEGER PRIMARY KEY, text TEXT NOT NULL)")
  const insert = db.prepare("INSERT INTO note (text) VALUES (?)")
  for (const seed of seeds) {
    const random = numbers(seed)
    db.transaction(() => {
      for (let n = 0; n < 3_000; n++) {
        insert.run((random() < 0.9 ? secret : "another note").repeat(1 + Math.floor(random() * 12)))
      }
    })()
    db.prepare("DELETE FROM note WHERE text LIKE ?").run(`${secret}%`)
  }
  db.pragma("wal_checkpoint(TRUNCATE)")
}
