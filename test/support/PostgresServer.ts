/** Starts Debian's PostgreSQL in a folder of its own, never as root. */
import { execFileSync, spawn } from "node:child_process"
import { chownSync, existsSync, readdirSync } from "node:fs"
import { join } from "node:path"

/** The folder of the newest PostgreSQL of Debian; undefined if there is none. */
export const postgresPrograms = (): string | undefined => {
  const root = "/usr/lib/postgresql"
  const versions = existsSync(root)
    ? readdirSync(root)
        .map(Number)
        .toSorted((a, b) => b - a)
    : []
  return versions.map((version) => join(root, String(version), "bin")).find((bin) => existsSync(join(bin, "initdb")))
}

export interface Server {
  readonly port: number
  readonly url: string
}

const settings = ["listen_addresses=127.0.0.1", "max_connections=300", "deadlock_timeout=200ms"]

/** Ends the server and removes its folder when the process that began it has ended. */
const watch = `
while kill -0 "$1" 2>/dev/null; do sleep 0.5; done
read -r server < "$2/data/postmaster.pid" && kill -INT "$server"
while kill -0 "$server" 2>/dev/null; do sleep 0.1; done
rm -rf "$2"`

/** The server refuses to run as root. */
export const asPostgres = (program: string, ...args: ReadonlyArray<string>): readonly [string, Array<string>] =>
  process.getuid?.() === 0
    ? ["setpriv", ["--reuid=postgres", "--regid=postgres", "--clear-groups", program, ...args]]
    : [program, [...args]]

const quietly = { stdio: "ignore", cwd: "/" } as const

const id = (flag: string): number => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }))

/** A port that is free now. */
export const freePort = (): number =>
  Number(
    execFileSync(process.execPath, [
      "-e",
      "const s=require('node:net').createServer().listen(0,'127.0.0.1',()=>{console.log(s.address().port);s.close()})"
    ]).toString()
  )

const program = (name: string): string => {
  const bin = postgresPrograms()
  if (bin === undefined) throw new Error("there is no PostgreSQL on this machine")
  return join(bin, name)
}

const control = (folder: string, ...words: ReadonlyArray<string>) =>
  asPostgres(program("pg_ctl"), "-D", join(folder, "data"), "-w", "-l", join(folder, "log"), ...words)

/** Ends every process of the server at once, as a crash does, and starts it again: it recovers from its log. */
export const crash = (folder: string): Promise<void> =>
  new Promise((resolve) => {
    spawn(...control(folder, "-m", "immediate", "restart"), quietly).once("close", () => resolve())
  })

/** Ends the server. */
export const stop = (folder: string): void => void execFileSync(...control(folder, "-m", "immediate", "stop"), quietly)

/** Starts a server in a folder, with further settings. It ends with the process `until`. */
export const start = (folder: string, until: number, further: ReadonlyArray<string> = []): Server => {
  if (process.getuid?.() === 0) chownSync(folder, id("-u"), id("-g"))
  const data = join(folder, "data")
  const how = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"]
  execFileSync(...asPostgres(program("initdb"), "-D", data, ...how), quietly)
  const port = freePort()
  const all = [...settings, `port=${port}`, "unix_socket_directories=", ...further]
  const flags = all.map((each) => `-c ${each}`).join(" ")
  execFileSync(...control(folder, "-o", flags, "start"), quietly)
  spawn("/bin/sh", ["-c", watch, "sh", String(until), folder], { stdio: "ignore", detached: true }).unref()
  return { port, url: `postgres://postgres@127.0.0.1:${port}/postgres` }
}
