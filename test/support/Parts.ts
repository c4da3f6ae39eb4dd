/**
 * The real parts that tests need besides Node: how to see that a part works here, and how to get it. A suite whose part is absent
 * does not run, and `AbsentParts.ts` names it at the end of the run. With `CI=true` the suite fails instead.
 */
import { spawnSync } from "node:child_process"
import { appendFileSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { expect } from "vitest"
import { type Absence, absencesVariable } from "./AbsentParts.ts"
import { library as faketime } from "./SteppedClock.ts"
import { postgresPrograms } from "./PostgresServer.ts"

export interface Part {
  /** What suites need, in a sentence. */
  readonly name: string
  /** Runs the part. */
  readonly works: () => boolean
  /** How to get it. */
  readonly get: string
  /** The parts that it needs itself. */
  readonly needs?: ReadonlyArray<string>
}

const runs = (program: string, ...args: ReadonlyArray<string>): boolean =>
  spawnSync(program, args, { stdio: "ignore", timeout: 30_000 }).status === 0

/** Calls `use` with a folder that is removed afterwards. */
const inFolder = <A>(use: (folder: string) => A): A => {
  const folder = mkdtempSync(join(tmpdir(), "daybook-part-"))
  try {
    return use(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }
}

const mounts = () =>
  inFolder((folder) => runs("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder) && runs("umount", folder))

/** Older servers have no `-V`, and print their version with the error. */
const sshd = () =>
  /OpenSSH/.test(spawnSync("/usr/sbin/sshd", ["-V"], { encoding: "utf8" }).stderr ?? "") &&
  ["ssh-keygen", "ssh-agent"].every((name) => runs("test", "-x", `/usr/bin/${name}`))

/** Ends the daemon at the line that says that it accepts connections. */
const startsDocker = `
{ timeout 30 /usr/sbin/dockerd -H "unix://$1/s" --data-root "$1/data" --exec-root "$1/run" -p "$1/pid" \\
    --bridge=none --iptables=false --ip6tables=false 2>&1 & echo "pid $!"; wait; } | {
  code=1
  while read -r line; do
    case $line in "pid "*) pid=\${line#pid } ;; *"API listen on"*) code=0; kill "$pid" ;; esac
  done
  exit $code
}`

const docker = () =>
  ["docker --version", "/bin/busybox true", "/bin/bash-static -c :"].every((command) => {
    const [program = "", ...args] = command.split(" ")
    return runs(program, ...args)
  }) && inFolder((folder) => runs("/bin/sh", "-c", startsDocker, "sh", folder))

/** The images of `deploy`, which are not downloaded in a test. */
const images = ["node:24-bookworm-slim", "postgres:17", "nginx:1.28-alpine"]

const compose = () =>
  runs("docker", "image", "inspect", ...images) &&
  (runs("docker", "compose", "version") || runs("docker-compose", "version"))

/** Root starts it as the user that its package makes. */
const postgres = () => {
  const bin = postgresPrograms()
  return bin !== undefined && runs(join(bin, "postgres"), "--version") && (!isRoot() || runs("id", "postgres"))
}

const linux = ["linux"]
const isRoot = () => process.getuid?.() === 0

const parts = {
  linux: { name: "Linux", works: () => process.platform === "linux", get: "run them on Linux" },
  processor: {
    name: "a processor whose system calls are known",
    works: () => process.arch === "x64" || process.arch === "arm64",
    get: "run them on x64 or arm64"
  },
  root: { name: "root", works: isRoot, get: "run them as root", needs: linux },
  admin: { name: "the right to mount", works: mounts, get: "run them as root with CAP_SYS_ADMIN", needs: ["root"] },
  bubblewrap: {
    name: "bubblewrap",
    works: () => runs("bwrap", "--ro-bind", "/", "/", "true"),
    get: "apt-get install bubblewrap",
    needs: linux
  },
  sshd: {
    name: "an SSH server",
    works: sshd,
    get: "apt-get install openssh-server openssh-client",
    needs: ["root"]
  },
  docker: {
    name: "a Docker daemon",
    works: docker,
    get: "apt-get install docker.io busybox-static bash-static",
    needs: ["root"]
  },
  compose: {
    name: "a Docker engine that runs, with Compose and the images of deploy",
    works: compose,
    get: `start Docker, and docker pull each of ${images.join(", ")}; or bash test/long/support/engine.sh npm run test:long -- test/long/Compose`
  },
  chromium: {
    name: "Chromium",
    works: () => runs("/usr/bin/chromium", "--version"),
    get: "apt-get install chromium",
    needs: linux
  },
  openssl: { name: "OpenSSL", works: () => runs("openssl", "version"), get: "apt-get install openssl" },
  python: { name: "Python", works: () => runs("python3", "--version"), get: "apt-get install python3" },
  postgres: { name: "PostgreSQL", works: postgres, get: "apt-get install postgresql", needs: linux },
  pgbouncer: {
    name: "PgBouncer",
    works: () => runs("pgbouncer", "--version"),
    get: "apt-get install pgbouncer",
    needs: ["postgres"]
  },
  faketime: {
    name: "libfaketime",
    works: () => faketime() !== undefined,
    get: "apt-get install faketime",
    needs: linux
  },
  tmux: { name: "tmux", works: () => runs("tmux", "-V"), get: "apt-get install tmux" }
} satisfies Record<string, Part>

/** A function that says whether a part is absent, and calls `note` if so. Where every part must be there, it fails. */
export const guardOf = <Name extends string>(
  known: Readonly<Record<Name, Part>>,
  options: { readonly required: boolean; readonly note: (part: Part) => void }
) => {
  const all: ReadonlyMap<string, Part> = new Map(Object.entries<Part>(known))
  const working = new Map<Part, boolean>()
  const works = (part: Part) => {
    const seen = working.get(part) ?? part.works()
    working.set(part, seen)
    return seen
  }
  /** What is absent: the part, or one that it needs. */
  const absent = (name: string): Part | undefined => {
    const part = all.get(name)
    const needed = part?.needs?.map(absent).find((each) => each !== undefined)
    return needed ?? (part === undefined || works(part) ? undefined : part)
  }
  return (name: Name): boolean => {
    const part = absent(name)
    if (part === undefined) return false
    if (options.required) throw new Error(`these tests need ${part.name}: ${part.get}`)
    options.note(part)
    return true
  }
}

const root = fileURLToPath(new URL("../", import.meta.url))

const note = ({ get, name: part }: Part): void => {
  const [absences, file] = [process.env[absencesVariable], expect.getState().testPath]
  if (absences === undefined || file === undefined) return
  appendFileSync(absences, `${JSON.stringify({ file: relative(root, file), part, get } satisfies Absence)}\n`)
}

/** Whether a part is absent, for `skipIf` of the suites and tests that need it. */
export const lacks = guardOf(parts, { required: process.env["CI"] === "true", note })
