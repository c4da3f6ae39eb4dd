/**
 * A real Docker daemon with its own socket and data, without systemd and network, and an image of busybox and bash. Containers
 * are removed with the daemon.
 */
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Context, Effect, Layer, type Scope } from "effect"
import type { DockerTarget } from "../../../packages/shell/src/domain/Target.ts"
import type { TransportSettings } from "../../../packages/shell/src/transport/TransportSettings.ts"
import { daemon } from "./Daemon.ts"

export interface Docker {
  /** Runs the client, and returns what it prints. */
  readonly run: (...args: ReadonlyArray<string>) => string
  /** A container that runs as long as the scope. */
  readonly container: (...options: ReadonlyArray<string>) => Effect.Effect<string, never, Scope.Scope>
  readonly target: (container: string, fields?: Partial<Omit<DockerTarget, "transport">>) => DockerTarget
  readonly settings: TransportSettings
  /** The daemon's process. */
  readonly pid: number
}

export const image = "daybook-test:1"

const makeImage = (folder: string, docker: Docker["run"]) => {
  const root = join(folder, "root")
  for (const name of ["bin", "tmp", "root", "etc", "home"]) mkdirSync(join(root, name), { recursive: true })
  copyFileSync("/bin/busybox", join(root, "bin/busybox"))
  copyFileSync("/bin/bash-static", join(root, "bin/bash"))
  execFileSync("/usr/sbin/chroot", [root, "/bin/busybox", "--install", "-s", "/bin"])
  execFileSync("/bin/chmod", ["1777", join(root, "tmp")])
  const users = ["root:x:0:0:root:/root:/bin/bash", "worker:x:1000:1000:worker:/home:/bin/bash"]
  writeFileSync(join(root, "etc/passwd"), `${users.join("\n")}\n`)
  execFileSync("tar", ["-C", root, "-cf", join(folder, "image.tar"), "."])
  docker("import", join(folder, "image.tar"), image)
}

export const make = Effect.gen(function* () {
  const folder = yield* Effect.acquireRelease(
    // The socket's path must be short.
    Effect.sync(() => mkdtempSync(join(tmpdir(), "dbd-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true, maxRetries: 5 }))
  )
  const host = `unix://${join(folder, "s")}`
  const { pid } = yield* daemon("/usr/sbin/dockerd", {
    args: `-H ${host} --data-root ${folder}/data --exec-root ${folder}/run -p ${folder}/pid
      --bridge=none --iptables=false --ip6tables=false`.split(/\s+/),
    ready: /API listen on/
  })
  const run: Docker["run"] = (...args) =>
    execFileSync("docker", args, { env: { ...process.env, DOCKER_HOST: host }, encoding: "utf8", stdio: "pipe" }).trim()
  makeImage(folder, run)
  const docker: Docker = {
    run,
    container: (...options) =>
      Effect.acquireRelease(
        Effect.sync(() => run("run", "-d", "--network=none", ...options, image, "sleep", "100000").slice(0, 12)),
        // A daemon that a test ended has ended its containers.
        (id) => Effect.ignore(Effect.try(() => run("rm", "-f", id)))
      ),
    target: (container, fields = {}) => ({ transport: "docker", container, ...fields }),
    settings: { dockerHost: host },
    pid
  }
  return docker
})

export class Dockerd extends Context.Tag("test/Dockerd")<Dockerd, Docker>() {}

export const layer = Layer.scoped(Dockerd, make)
