/**
 * Opens SQLite's driver, and is the only module that does. better-sqlite3 12 aborts the process on Node 24 when V8 collects a
 * statement, seconds or hours after the database was opened; better-sqlite3 13 crashes on Node 20. Both pairs are refused at
 * once. Spec: PA-3, PA-11.
 */
import Sqlite from "better-sqlite3"

export type Database = Sqlite.Database

/** The oldest major version of Node that Daybook supports. */
const oldestNode = 22

/** Says why this driver cannot be used on this version of Node; undefined if it can. */
export const problemOf = (driver: object, node: string): string | undefined => {
  const major = Number.parseInt(node)
  if (major < oldestNode) return `Daybook needs Node ${oldestNode} or newer, this is Node ${node}`
  // Each release of 13 has this method, and none of 12.
  const isOld = !("explain" in driver)
  return isOld && major >= 24
    ? `better-sqlite3 before version 13 aborts on Node ${node}; npm install better-sqlite3@13`
    : undefined
}

/** Opens a database. Throws the driver's error, or an `Error` if the driver cannot be used on this version of Node. */
export const open = (filename: string, options: Sqlite.Options = {}): Database => {
  const problem = problemOf(Sqlite.prototype, process.versions.node)
  if (problem !== undefined) throw new Error(problem)
  return new Sqlite(filename, options)
}
