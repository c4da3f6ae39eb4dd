/** Commands, lists, completion and servers on the screen. Method: as in Screen.tmux.world.test.ts. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "../cli/support/Bundle.ts"
import { held } from "../cli/support/Held.ts"
import { place } from "../cli/support/Process.ts"
import { serveAt } from "../cli/support/RemoteServer.ts"
import { lacks } from "../support/Parts.ts"
import { opened, send, status } from "./support/Opened.ts"
import * as Tmux from "./support/Tmux.ts"

beforeAll(() => void build())

/** Prompts the session of a place, and has it answered. */
const answered = (text: string, answer: string) => (place: Effect.Effect.Success<typeof held>) =>
  Effect.gen(function* () {
    const run = yield* Effect.fork(place.here.run(["prompt", text], { env: place.env }))
    const turn = yield* place.model.next
    yield* turn.text(answer)
    yield* turn.finish()
    yield* Fiber.join(run)
  })

describe.skipIf(lacks("tmux"))("commands of the screen", () => {
  it.scopedLive("SC-531: what a verb prints stands above the editor, whole", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      yield* send(pane, "Begin")
      const turn = yield* model.next
      yield* turn.text("Done.")
      yield* turn.finish()
      yield* pane.until((screen) => screen.includes("Done.") && !screen.includes("answering"))
      yield* send(pane, "/budget")
      const screen = yield* pane.until((screen) => /^left/m.test(screen))
      const rows = screen.split("\n").map((line) => line.trimEnd())
      assert.match(
        rows[rows.findIndex((row) => row.startsWith("with children"))] ?? "",
        /^with children +\$0\.0000 +5$/
      )
      assert.isAbove(
        rows.findIndex((row) => row.startsWith("───")),
        rows.findIndex((row) => row.startsWith("left"))
      )
    })
  )

  it.scopedLive(
    "SC-502: the screen says before the first prompt that there is no model, or that it cannot be used",
    () =>
      Effect.gen(function* () {
        const here = yield* place
        const pane = yield* Tmux.start(here)
        yield* pane.until((screen) => screen.includes("no language model is configured") && screen.includes("_API_KEY"))
        const wrong = yield* Tmux.start(here, { name: "wrong", words: "-m nope/nope" })
        yield* wrong.until((screen) => screen.includes('provider "nope" is not available'))
      })
  )

  it.scopedLive("SC-530: a command misspelt is not sent, and stays to be mended", () =>
    Effect.gen(function* () {
      const { pane } = yield* opened()
      yield* send(pane, "/hepl")
      yield* pane.until((screen) => screen.includes("did you mean help?") && /^\/hepl/m.test(screen))
    })
  )

  it.scopedLive("SC-524: /sessions finds a session by its words, previews it, and shows it", () =>
    Effect.gen(function* () {
      const place = yield* held
      yield* answered("Fix the login", "Fixed.")(place)
      yield* answered("Write a guide", "Written.")(place)
      const pane = yield* Tmux.start(place.here, { env: place.env, rows: 30 })
      yield* pane.until((screen) => screen.includes(status))
      yield* send(pane, "/sessions")
      yield* pane.until((screen) => screen.includes("Fix the login") && screen.includes("› Write a guide"))
      yield* pane.type("login")
      yield* pane.until((screen) => screen.includes("› Fix the login") && screen.includes("Fixed."))
      yield* pane.press("Enter")
      yield* pane.until((screen) => screen.includes("▌ Fix the login") && screen.includes("Fixed."))
    })
  )

  it.scopedLive(
    "SC-564: /search finds an answer in all sessions; the chosen one is shown whole below its session",
    () =>
      Effect.gen(function* () {
        const place = yield* held
        yield* answered("Fix the login", "The cookie had expired.\n\nIt lasts a week now.")(place)
        yield* answered("Write a guide", "Written.")(place)
        const pane = yield* Tmux.start(place.here, { env: place.env, rows: 30 })
        yield* pane.until((screen) => screen.includes(status))
        yield* send(pane, "/search cookie")
        yield* pane.until(
          (screen) => /^› assistant just now/m.test(screen) && screen.includes("│ It lasts a week now.")
        )
        yield* pane.press("Enter")
        const screen = yield* pane.until((screen) => screen.includes("found (assistant, just now):"))
        assert.isBelow(screen.indexOf("▌ Fix the login"), screen.indexOf("found (assistant"))
        assert.include(screen.slice(screen.indexOf("found (assistant")), "It lasts a week now.")
      })
  )

  it.scopedLive("SC-565: Esc twice while nothing runs lists the prompts to go back to, not while a text is typed", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      yield* send(pane, "Do the first thing")
      const turn = yield* model.next
      yield* turn.text("Done.")
      yield* turn.finish()
      yield* pane.until((screen) => screen.includes("Done.") && !screen.includes("answering"))
      yield* pane.type("more")
      yield* pane.press("Escape", "Escape")
      yield* pane.until((screen) => /^more/m.test(screen))
      yield* pane.press("C-c")
      yield* pane.until((screen) => !/^more/m.test(screen))
      assert.notInclude(yield* pane.all, "go back before")
      yield* pane.press("Escape", "Escape")
      yield* pane.until((screen) => screen.includes("› * you   Do the first thing"))
      yield* pane.press("Enter")
      yield* pane.until((screen) => screen.includes("goes on before its first prompt") && /^Do the first/m.test(screen))
    })
  )

  it.scopedLive("SC-563: a template with the name of another agent's command is a prompt", () =>
    Effect.gen(function* () {
      const place = yield* held
      mkdirSync(join(place.here.root, ".config", "daybook", "templates"), { recursive: true })
      writeFileSync(join(place.here.root, ".config", "daybook", "templates", "status.md"), "Say the status.")
      const pane = yield* Tmux.start(place.here, { env: place.env })
      yield* pane.until((screen) => screen.includes(status))
      yield* send(pane, "/cost")
      yield* pane.until((screen) => screen.includes("here, /cost is /budget"))
      yield* pane.press("C-c")
      yield* send(pane, "/status")
      const turn = yield* place.model.next
      assert.include(JSON.stringify(turn.body.messages), "Say the status.")
      yield* turn.finish()
    })
  )

  it.scopedLive("SC-532: /undo puts the prompt that it takes back into the editor", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened()
      yield* send(pane, "Do the first thing")
      const turn = yield* model.next
      yield* turn.text("Done.")
      yield* turn.finish()
      yield* pane.until((screen) => screen.includes("Done.") && !screen.includes("answering"))
      yield* send(pane, "/undo")
      yield* pane.until(
        (screen) => screen.includes('took back "Do the first thing"') && /^Do the first thing/m.test(screen)
      )
    })
  )

  it.scopedLive("SC-560, SC-561: /tree shows the branch that was left, and a note says where the history goes on", () =>
    Effect.gen(function* () {
      const { model, pane } = yield* opened({ rows: 30 })
      const ask = (text: string, answer: string) =>
        Effect.gen(function* () {
          yield* send(pane, text)
          const turn = yield* model.next
          yield* turn.text(answer)
          yield* turn.finish()
          yield* pane.until((screen) => screen.includes(answer) && !screen.includes("answering"))
        })
      yield* ask("Do one", "Done one.")
      yield* ask("Do two", "Done two.")
      yield* send(pane, "/undo")
      yield* pane.until((screen) => screen.includes('goes on after "Done one.", the answer to "Do one"'))
      yield* pane.press("C-c")
      yield* ask("Do three", "Done three.")
      yield* send(pane, "/tree")
      const screen = yield* pane.until((screen) => screen.includes("› ● model Done three."))
      const rows = screen.split("\n").flatMap((row) => /^[› ] ((?:\|- |\| {2})?[●*o] .*?)\s*$/.exec(row)?.[1] ?? [])
      assert.deepStrictEqual(rows, [
        "* you   Do one",
        "* model Done one.",
        "|- o you   Do two",
        "|  o model Done two.",
        "* you   Do three",
        "● model Done three."
      ])
      yield* pane.press("Up", "Up")
      yield* pane.until((screen) => /^› .*Done two/m.test(screen))
      yield* pane.press("Enter")
      yield* pane.until((screen) => screen.includes('goes on after "Done two.", the answer to "Do two"'))
    })
  )

  it.scopedLive("SC-518: Tab completes a file after @, and the model is shown it", () =>
    Effect.gen(function* () {
      const { here, model, pane } = yield* opened()
      mkdirSync(join(here.cwd, "notes"))
      writeFileSync(join(here.cwd, "notes", "plan.md"), "the plan of today")
      yield* pane.type("Read @not")
      yield* pane.until((screen) => screen.includes("notes/"))
      yield* pane.press("Tab")
      yield* pane.type("pl")
      yield* pane.until((screen) => screen.includes("notes/plan.md"))
      yield* pane.press("Tab")
      yield* pane.until((screen) => screen.includes("Read @notes/plan.md"))
      yield* pane.press("Enter")
      const turn = yield* model.next
      assert.include(JSON.stringify(turn.body.messages), "the plan of today")
      yield* turn.finish()
    })
  )

  it.scopedLive("SC-518: the words of /agent and /model are completed", () =>
    Effect.gen(function* () {
      const { pane } = yield* opened()
      yield* pane.type("/agent pl")
      yield* pane.until((screen) => /→ plan/.test(screen))
      yield* pane.press("Tab")
      yield* pane.until((screen) => /^\/agent plan/m.test(screen))
      yield* pane.press("Enter")
      yield* pane.until((screen) => screen.includes("the agent is plan") && screen.includes(`${status} · plan`))
      yield* pane.type("/model scr")
      yield* pane.until((screen) => /→ offline\/scribe/.test(screen))
    })
  )

  it.scopedLive("SC-517: Up recalls the last prompt, Ctrl-R finds one of another session", () =>
    Effect.gen(function* () {
      const place = yield* held
      yield* answered("Fix the login", "Fixed.")(place)
      yield* answered("Write a guide", "Written.")(place)
      const pane = yield* Tmux.start(place.here, { env: place.env })
      yield* pane.until((screen) => screen.includes(status))
      yield* pane.press("C-r")
      yield* pane.until((screen) => screen.includes("earlier prompts"))
      yield* pane.type("log")
      yield* pane.until((screen) => screen.includes("› Fix the login") && !screen.includes("› Write"))
      yield* pane.press("Enter")
      yield* pane.until((screen) => /^Fix the login/m.test(screen))
      yield* pane.press("C-c", "Up")
      yield* pane.until((screen) => /^Write a guide/m.test(screen))
    })
  )

  it.scopedLive("SC-535: attach shows a session of a server, live, and answers its permission", () =>
    Effect.gen(function* () {
      const place = yield* held
      const { env, here, model } = place
      yield* answered("Serve this", "Served.")(place)
      const server = yield* serveAt(here, env)
      const pane = yield* Tmux.start(here, { env, words: `${server.join(" ")} attach "Serve this"` })
      yield* pane.until((screen) => screen.includes("▌ Serve this") && screen.includes("Served."))
      yield* send(pane, "Write it")
      const turn = yield* model.next
      yield* turn.text("I wri")
      yield* pane.until((screen) => screen.includes("I wri"))
      yield* turn.text("te.")
      yield* turn.toolCall("call_1", "write", { path: "a.txt", content: "one\n" })
      yield* turn.finish("tool_calls")
      yield* pane.until((screen) => screen.includes("creates a.txt") && !screen.includes("─────"))
      yield* pane.press("y")
      const second = yield* model.next
      assert.isTrue(existsSync(join(here.cwd, "a.txt")))
      yield* second.text("It is written.")
      yield* second.finish()
      yield* pane.until((screen) => screen.includes("It is written.") && screen.includes("+ one"))
    })
  )

  it.scopedLive(
    "SC-520: a server's permission is asked on two screens, and goes away on the one that did not answer",
    () =>
      Effect.gen(function* () {
        const place = yield* held
        const { env, here, model } = place
        yield* answered("Serve this", "Served.")(place)
        const server = yield* serveAt(here, env)
        const words = `${server.join(" ")} attach "Serve this"`
        const one = yield* Tmux.start(here, { env, words, name: "one" })
        const other = yield* Tmux.start(here, { env, words, name: "other", columns: 40 })
        for (const pane of [one, other]) yield* pane.until((screen) => screen.includes("Served."))
        yield* send(one, "Write it")
        const turn = yield* model.next
        yield* turn.toolCall("call_1", "write", { path: "a.txt", content: "one\n" })
        yield* turn.finish("tool_calls")
        for (const pane of [one, other]) {
          yield* pane.until((screen) => screen.includes("creates a.txt") && !screen.includes("─────"))
        }
        yield* other.press("y")
        const second = yield* model.next
        yield* second.text("It is written.")
        yield* second.finish()
        for (const pane of [one, other]) {
          yield* pane.until((screen) => screen.includes("It is written.") && !screen.includes("[y]es"))
        }
      })
  )

  it.scopedLive("SC-570: from another folder the server's last session is offered, and -c goes on with it", () =>
    Effect.gen(function* () {
      const place = yield* held
      const { env, here } = place
      yield* answered("Serve this", "Served.")(place)
      const server = (yield* serveAt(here, env)).join(" ")
      // The shell's folder is another one than that of the session.
      const pane = yield* Tmux.start({ ...here, cwd: here.root }, { env, words: server })
      yield* pane.until((screen) => screen.includes('Enter goes on with "Serve this"'))
      const on = yield* Tmux.start({ ...here, cwd: here.root }, { env, words: `${server} -c`, name: "on" })
      yield* on.until((screen) => screen.includes("▌ Serve this") && screen.includes("Served."))
    })
  )

  it.scopedLive("SC-536: -c goes on with the last session, with the agent that is named", () =>
    Effect.gen(function* () {
      const place = yield* held
      yield* answered("Plan it", "Planned.")(place)
      const pane = yield* Tmux.start(place.here, { env: place.env, words: "-c -a plan" })
      yield* pane.until((screen) => screen.includes("Planned.") && screen.includes("the agent is plan"))
      yield* pane.press("BTab")
      yield* pane.until((screen) => screen.includes("the agent is build") && screen.includes(`${status} · build`))
    })
  )

  it.scopedLive("SC-519: Ctrl-G edits the text in the person's editor", () =>
    Effect.gen(function* () {
      const place = yield* held
      const script = join(place.here.root, "editor")
      writeFileSync(script, 'printf "and more" >> "$1"\n')
      const pane = yield* Tmux.start(place.here, { env: { ...place.env, EDITOR: `sh ${script}` } })
      yield* pane.until((screen) => screen.includes(status))
      yield* pane.type("Some text ")
      yield* pane.until((screen) => screen.includes("Some text"))
      yield* pane.press("C-g")
      yield* pane.until((screen) => screen.includes("Some text and more") && screen.includes(status))
    })
  )
})
