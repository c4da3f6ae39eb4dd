/** What checkpoints guarantee on every transport. Each transport's test file calls this with its own transport. */
import { expect, it } from "@effect/vitest"
import { Effect, type Scope } from "effect"
import { describe } from "vitest"
import * as Checkpoints from "../../../packages/shell/src/checkpoint/Checkpoints.ts"
import { runScript } from "../../../packages/shell/src/checkpoint/Checkpoints.ts"
import type { TransportFailed } from "../../../packages/shell/src/domain/ShellError.ts"
import { quoted } from "../../../packages/shell/src/session/ShellScripts.ts"
import type { Transport } from "../../../packages/shell/src/transport/Program.ts"

export interface CheckpointPlace {
  /** The transport's name, for the titles. */
  readonly name: string
  readonly transport: Effect.Effect<Transport, TransportFailed, Scope.Scope>
  /** The folder of the workspaces; `/tmp` by default. */
  readonly base?: (transport: Transport) => string
}

export interface Workspace {
  readonly folder: string
  readonly checkpoints: Checkpoints.Checkpoints
  /** Runs a script in the workspace; returns what it prints. */
  readonly sh: (script: string) => Effect.Effect<string>
  /** Each path of the workspace with its mode, kind and content, as bytes. */
  readonly tree: Effect.Effect<ReadonlyMap<string, string>>
}

const treeScript = `
find . -mindepth 1 -exec sh -c '
  for f; do
    printf "%s\\0%s " "$f" "$(stat -c "%a %F" -- "$f")"
    if [ -L "$f" ]; then readlink -- "$f"; elif [ -f "$f" ]; then cksum <"$f"; fi
    printf "\\0"
  done' sh {} +`

/** A new workspace, which the scope's end removes. */
export const workspaceOn = (
  transport: Transport,
  options: {
    readonly ignores?: ReadonlyArray<string>
    readonly base?: string
    readonly limits?: Partial<Checkpoints.AllLimits>
  } = {}
) =>
  Effect.gen(function* () {
    const print = (script: string) =>
      Effect.map(
        Effect.orDie(runScript(transport, (token) => `(${script}\n) 2>&1; printf '%s%s\\n%s' ${token} "$?" ${token}`)),
        ({ code, output }) => {
          if (code !== 0) throw new Error(`the script ended with ${code}: ${output.toString()}\n${script}`)
          return output.toString("latin1")
        }
      )
    const folder = yield* Effect.acquireRelease(
      print(`printf %s "$(mktemp -d ${options.base ?? "/tmp"}/daybook-workspace.XXXXXX)"`),
      (path) => Effect.ignore(print(`chmod -R u+rwx ${quoted(path)}; rm -rf -- ${quoted(path)}`))
    )
    const checkpoints = yield* Checkpoints.make(
      transport,
      { workspace: folder, ignores: options.ignores ?? [] },
      (text) => text,
      { ...Checkpoints.usual, ...options.limits }
    )
    const sh = (script: string) => print(`cd ${quoted(folder)} || exit 99\n${script}`)
    const workspace: Workspace = {
      folder,
      checkpoints,
      sh,
      tree: Effect.map(sh(treeScript), (output) => {
        const fields = output.split("\0").slice(0, -1)
        return new Map(fields.flatMap((path, index) => (index % 2 === 0 ? [[path, fields[index + 1] ?? ""]] : [])))
      })
    }
    return workspace
  })

export const checkpointContract = ({ base = () => "/tmp", name, transport }: CheckpointPlace) => {
  const live = (
    title: string,
    use: (workspace: Workspace) => Effect.Effect<void, unknown, Scope.Scope>,
    options: { readonly ignores?: ReadonlyArray<string> } = {}
  ) =>
    it.live(`${title} (${name})`, () =>
      Effect.scoped(
        Effect.flatMap(transport, (each) => Effect.flatMap(workspaceOn(each, { ...options, base: base(each) }), use))
      )
    )

  describe.concurrent("checkpoints", () => {
    live("SL-159: a restore takes back edits, deletions and additions", ({ checkpoints, sh, tree }) =>
      Effect.gen(function* () {
        yield* sh("mkdir d; echo 1 >a; echo 2 >d/b; echo 3 >d/c")
        const before = yield* tree
        const { id } = yield* checkpoints.create("asked", "first")
        yield* sh("echo changed >a; rm d/b; mkdir -p new/deep; echo x >new/deep/x")
        const restored = yield* checkpoints.restore(id)
        expect(yield* tree).toEqual(before)
        expect(restored).toMatchObject({
          restored_to: id,
          files_changed: 3,
          added: ["d/b"],
          changed: ["a"],
          deleted: ["new/deep/x"]
        })
      })
    )

    live("SL-159: a restore removes files that a later checkpoint captured", ({ checkpoints, sh, tree }) =>
      Effect.gen(function* () {
        yield* sh("echo 1 >a")
        const before = yield* tree
        const { id } = yield* checkpoints.create("asked")
        yield* sh("echo 2 >b")
        yield* checkpoints.create("asked")
        yield* checkpoints.restore(id)
        expect(yield* tree).toEqual(before)
      })
    )

    live("SL-160: a restore of the checkpoint before a restore takes it back", ({ checkpoints, sh, tree }) =>
      Effect.gen(function* () {
        yield* sh("echo 1 >a; echo '*.log' >.gitignore; echo old >kept.txt")
        const { id } = yield* checkpoints.create("asked")
        yield* sh("echo 2 >a; echo 3 >b; echo 'kept.txt' >>.gitignore; echo new >kept.txt")
        const changed = yield* tree
        const { safety_checkpoint } = yield* checkpoints.restore(id)
        yield* checkpoints.restore(safety_checkpoint)
        expect(yield* tree).toEqual(changed)
      })
    )

    live("SL-156: ignored files stay, by the present rules and by the checkpoint's own", ({ checkpoints, sh }) =>
      Effect.gen(function* () {
        yield* sh(
          "printf 'build/\\n*.log\\n' >.gitignore; mkdir -p build d; echo 1 >build/o; echo 1 >d/x.log; echo 1 >a"
        )
        const { id } = yield* checkpoints.create("asked")
        // Without the rules, the files are captured before the restore.
        yield* sh(
          "rm .gitignore; echo 2 >build/o; echo 2 >d/x.log; echo 2 >d/y.log; rm a; echo 'n*' >.gitignore; echo 1 >new"
        )
        const restored = yield* checkpoints.restore(id)
        expect(restored).toMatchObject({ added: ["a"], changed: [".gitignore"], deleted: [] })
        expect(yield* sh("cat build/o d/x.log d/y.log a new")).toBe("2\n2\n2\n1\n1\n")
      })
    )

    live(
      "SL-156: files that the shell's own patterns ignore stay, and no rule negates these",
      ({ checkpoints, sh }) =>
        Effect.gen(function* () {
          yield* sh("echo '!data/' >.gitignore; mkdir data; echo 1 >data/a; echo 1 >b")
          const { id } = yield* checkpoints.create("asked")
          yield* sh("echo 2 >data/a; echo 2 >data/new; echo 2 >b")
          yield* checkpoints.restore(id)
          expect(yield* sh("cat data/a data/new b")).toBe("2\n2\n1\n")
        }),
      { ignores: ["data/"] }
    )

    live("SL-157: secrets are in no checkpoint, whatever a .gitignore says", ({ checkpoints, folder, sh }) =>
      Effect.gen(function* () {
        const files = [
          ".ssh/id",
          ".env",
          ".env.local",
          "sub/.aws/credentials",
          ".netrc",
          "server.pem",
          "id_rsa",
          ".cache/x"
        ]
        yield* sh(
          `printf '!*\\n!.ssh/\\n!.env\\n!**/.aws\\n' >.gitignore; mkdir -p .ssh sub/.aws .cache .gnupg/empty
          for f in ${files.join(" ")}; do echo planted-one >"$f"; done; echo seen >plain`
        )
        const { id } = yield* checkpoints.create("asked")
        yield* sh(
          `for f in ${files.join(" ")}; do echo planted-two >"$f"; done; echo changed >plain; rmdir .gnupg/empty`
        )
        expect(yield* checkpoints.restore(id)).toMatchObject({ changed: ["plain"], files_changed: 1 })
        expect(yield* sh(`cat ${files.join(" ")} plain; ls .gnupg`)).toBe(
          `${"planted-two\n".repeat(files.length)}seen\n`
        )
        // Nor is the content in any object of the shadow repository.
        expect(
          yield* sh(
            `for store in /var/tmp/daybook-checkpoints.*; do
              [ "$(cat "$store/workspace" 2>/dev/null)" = ${quoted(folder)} ] || continue
              for o in $(git --git-dir="$store" cat-file --batch-all-objects --batch-check='%(objecttype)-%(objectname)'); do
                case $o in blob-*) git --git-dir="$store" cat-file blob "\${o#blob-}" | grep -a planted || : ;; esac
              done
              echo searched
            done`
          )
        ).toBe("searched\n")
      })
    )

    live(
      "SL-158: repositories within the workspace, and the workspace's own, are never touched",
      ({ checkpoints, sh }) =>
        Effect.gen(function* () {
          const repositories = "git init -q .; git init -q nested; git init -q deep/empty"
          const hostile = `for r in . nested; do (cd $r
          git config core.fsmonitor 'touch ran; false'; git config filter.f.clean 'touch ran; cat'
          git config filter.f.smudge 'touch ran; cat'; echo '* filter=f text eol=crlf' >.gitattributes
          for h in post-index-change pre-commit post-checkout reference-transaction; do
            printf '#!/bin/sh\\ntouch ran\\n' >.git/hooks/$h; chmod +x .git/hooks/$h
          done); done`
          const state = "find .git nested deep -type f -exec cksum {} + | sort"
          yield* sh(`${repositories}; ${hostile}; printf 'a\\r\\nb\\n' >text; echo n >nested/n`)
          const before = yield* sh(state)
          const { id } = yield* checkpoints.create("asked")
          yield* sh("echo >text; mkdir -p other; echo >other/new")
          yield* checkpoints.restore(id)
          expect(yield* sh(state)).toBe(before)
          expect(yield* sh("cat text; ls; find . -name ran")).toBe("a\r\nb\ndeep\nnested\ntext\n")
        })
    )

    live("SL-155: links, modes, empty folders and odd names come back exactly", ({ checkpoints, sh, tree }) =>
      Effect.gen(function* () {
        const odd = "\"$(printf 'new\\nline')\" ./-dash \"$(printf 'b\\377\\201\\210')\" 'a\\b' ' s p ' '*' '$x' '\"q'"
        yield* sh(`
          for f in ${odd}; do echo "$f" >"$f"; mkdir -p "d$f/in"; echo 1 >"d$f/in/$f"; mkdir "e$f"; done
          ln -s target link; ln -s / root; ln -s d folder; mkdir -p empty/of/all private/sub
          echo 1 >private/f; chmod 700 private; chmod 2775 private/sub; echo 1 >x; chmod 751 x; echo 2 >r; chmod 400 r`)
        const before = yield* tree
        const { id } = yield* checkpoints.create("asked")
        yield* sh(`chmod 600 x; chmod 755 private; rm link root; echo 1 >link; mkdir root; rm -rf empty 'a\\b'; echo 3 >empty
          for f in ${odd}; do rm -rf "e$f" "d$f"; done; rm -f r ./-dash; mkdir r; mkdir r/new`)
        yield* checkpoints.restore(id)
        expect(yield* tree).toEqual(before)
      })
    )

    live("SL-161: a change of a mode alone counts as a changed file", ({ checkpoints, sh }) =>
      Effect.gen(function* () {
        yield* sh("echo 1 >a; echo 1 >b")
        yield* checkpoints.create("asked")
        yield* sh("chmod 600 a; chmod 755 b")
        expect(yield* checkpoints.restore()).toMatchObject({ changed: ["b", "a"], files_changed: 2 })
      })
    )

    live("SL-162: nothing is written or deleted through a link", ({ checkpoints, folder, sh }) =>
      Effect.gen(function* () {
        yield* sh(`mkdir -p d "${folder}.out/d"; echo 1 >d/a; echo outside >"${folder}.out/d/a"; mkdir d/e`)
        const { id } = yield* checkpoints.create("asked")
        yield* sh(`rm -rf d; ln -s "${folder}.out/d" d`)
        yield* checkpoints.create("asked")
        yield* checkpoints.restore(id)
        expect(yield* sh(`cat d/a "${folder}.out/d/a"; ls "${folder}.out/d"; rm -rf "${folder}.out"`)).toBe(
          "1\noutside\na\n"
        )
      })
    )

    live("SL-162: a file that no checkpoint holds is never overwritten", ({ checkpoints, sh }) =>
      Effect.gen(function* () {
        yield* sh("echo 1 >a; echo 1 >b")
        const { id } = yield* checkpoints.create("asked")
        yield* sh("rm a; mkfifo a; echo 2 >b")
        const error = yield* Effect.flip(checkpoints.restore(id))
        expect(error).toMatchObject({ _tag: "CheckpointFailed", reason: "failed" })
        expect(error.message).toMatch(/'a'[^]*checkpoint [0-9a-f]{40}/)
        expect(yield* sh("[ -p a ] && cat b")).toBe("2\n")
      })
    )

    live("SL-154: checkpoints are listed newest first, and the default is the most recent that was asked for", (each) =>
      Effect.gen(function* () {
        const { checkpoints, sh } = each
        yield* sh("echo 1 >a")
        const first = yield* checkpoints.create("asked", "erster\nTest é")
        yield* sh("echo 2 >a")
        const second = yield* checkpoints.create("command")
        yield* sh("echo 3 >a")
        const { restored_to, safety_checkpoint } = yield* checkpoints.restore()
        expect(restored_to).toBe(second.id)
        expect(yield* checkpoints.list).toMatchObject([
          { id: safety_checkpoint, kind: "restore" },
          { id: second.id, kind: "command" },
          { id: first.id, kind: "asked", label: "erster\nTest é" }
        ])
        expect((yield* checkpoints.restore()).files_changed).toBe(0)
        expect(yield* sh("cat a")).toBe("2\n")
      })
    )

    live("SL-155: an empty workspace is restored from and to", ({ checkpoints, sh, tree }) =>
      Effect.gen(function* () {
        const { id } = yield* checkpoints.create("asked")
        yield* sh("echo 1 >a; mkdir b")
        const { safety_checkpoint } = yield* checkpoints.restore(id)
        expect(yield* tree).toEqual(new Map())
        expect(yield* checkpoints.restore(safety_checkpoint)).toMatchObject({ added: ["a"], files_changed: 1 })
      })
    )

    live(
      "SL-159: folders that hold only empty folders go and come back, with their modes",
      ({ checkpoints, sh, tree }) =>
        Effect.gen(function* () {
          yield* sh("mkdir -p a/b/c; chmod 700 a; chmod 711 a/b; echo 1 >f")
          const before = yield* tree
          const { id } = yield* checkpoints.create("asked")
          yield* sh("rm -r a; mkdir -p x/y/z")
          yield* checkpoints.restore(id)
          expect(yield* tree).toEqual(before)
        })
    )

    live("SL-154: an unchanged workspace gives a command no new checkpoint", ({ checkpoints, sh }) =>
      Effect.gen(function* () {
        yield* sh("echo 1 >a")
        const first = yield* checkpoints.create("command")
        expect(yield* checkpoints.create("command")).toEqual({ id: first.id, isNew: false })
        yield* sh("echo 2 >a")
        expect((yield* checkpoints.create("command")).id).not.toBe(first.id)
      })
    )

    live("SL-153: an id is checked before use, and an unknown one is an error", ({ checkpoints, sh, tree }) =>
      Effect.gen(function* () {
        yield* sh("echo 1 >a")
        const { id } = yield* checkpoints.create("asked")
        const before = yield* tree
        for (const bad of [
          "",
          "abc",
          "--help",
          "HEAD",
          `${id}0`,
          "zzzz",
          "abcd;ls",
          id.toUpperCase().replace(/^/, "A")
        ]) {
          expect(yield* Effect.flip(checkpoints.restore(bad))).toMatchObject({ _tag: "InvalidOption" })
        }
        const other = id.startsWith("0000") ? "1111" : "0000"
        expect(yield* Effect.flip(checkpoints.restore(other))).toMatchObject({ _tag: "CheckpointNotFound" })
        expect(yield* tree).toEqual(before)
        expect((yield* checkpoints.restore(id.slice(0, 12))).restored_to).toBe(id)
      })
    )
  })
}
