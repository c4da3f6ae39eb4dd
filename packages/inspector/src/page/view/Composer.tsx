/** Prompts a session, shows what waits in its inbox, and answers its questions. Spec: IP-9 in specs/http.md. */
import { useEffect, useRef, useState } from "preact/hooks"
import type { OpenPermission } from "@daybook/api/group/WorkApi"
import type { PendingQuestion } from "@daybook/core/domain/Question"
import type { PermissionSubject } from "@daybook/core/permission/PermissionSubject"
import { durationText, visible } from "../fold/Words.ts"
import type { OpenSession } from "../state/OpenSession.ts"
import { Code } from "./Markdown.tsx"
import { Badge, Problem, Raw, Text, useAction } from "./Parts.tsx"

const changeOf = (line: string): string => (line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "same")

const Diff = ({ path, text }: { readonly path: string; readonly text: string }) => (
  <pre class="diff" tabIndex={0} role="region" aria-label={`Changes of ${path}`}>
    {text.split("\n").map((line, index) => (
      <span key={index} class={changeOf(line)}>{`${visible(line)}\n`}</span>
    ))}
  </pre>
)

const Subject = ({ subject }: { readonly subject: PermissionSubject }) => {
  switch (subject.type) {
    case "command":
      return (
        <>
          <Code language="bash" text={subject.command} />
          <p class="soft">
            in <Text>{subject.folder}</Text>
          </p>
          {subject.warnings.map((warning) => (
            <p key={warning} class="problem">
              <Text>{warning}</Text>
            </p>
          ))}
        </>
      )
    case "change":
      return (
        <>
          {subject.files.map(({ change, diff, movedTo, path }) => (
            <div key={path}>
              <p>
                <Badge>{change}</Badge> <Text>{movedTo === undefined ? path : `${path} \u2192 ${movedTo}`}</Text>
              </p>
              <Diff path={path} text={diff} />
            </div>
          ))}
        </>
      )
    default:
      // Every other subject is small: a path, a name, an input.
      return <Raw label="What the call would do" text={JSON.stringify(subject, undefined, 2)} />
  }
}

export const Permission = ({
  permission,
  session
}: {
  readonly permission: OpenPermission
  readonly session: OpenSession
}) => {
  const { error, isBusy, run } = useAction()
  const [message, setMessage] = useState("")
  const { always, ask, notes, resources, subject, timeLeftMs, title, tool } = permission
  // A command's title and resource repeat the command, which is shown whole.
  const isCommand = subject.type === "command"
  const decide = (decision: unknown) => () => void run(() => session.decide(ask, decision))
  return (
    <section class="question" aria-label={`Permission for ${tool}`}>
      <h3>
        <Badge tone="warn">{permission.permission}</Badge> <Text>{isCommand ? "Run this command?" : title}</Text>
      </h3>
      <Subject subject={subject} />
      {isCommand ? undefined : (
        <p class="soft">
          <Text>{resources.join(", ")}</Text>
        </p>
      )}
      {notes.map((note) => (
        <p key={note}>
          <Text>{note}</Text>
        </p>
      ))}
      {timeLeftMs === undefined ? undefined : (
        <p class="soft">Refused in {durationText(timeLeftMs)} without a decision.</p>
      )}
      <div class="decide">
        <div class="actions">
          <button type="button" class="main" disabled={isBusy} onClick={decide({ decision: "once" })}>
            Allow once
          </button>
          {always.length === 0 ? undefined : (
            <>
              <button
                type="button"
                disabled={isBusy}
                title={always.join(", ")}
                onClick={decide({ decision: "session" })}
              >
                Allow in this session
              </button>
              <button
                type="button"
                disabled={isBusy}
                title={always.join(", ")}
                onClick={decide({ decision: "always" })}
              >
                Always allow
              </button>
            </>
          )}
          <button type="button" disabled={isBusy} onClick={decide({ decision: "decline" })}>
            Decline
          </button>
        </div>
        <div class="actions">
          <input
            aria-label="What to do instead"
            placeholder="What to do instead"
            value={message}
            onInput={({ currentTarget }) => setMessage(currentTarget.value)}
          />
          <button
            type="button"
            disabled={isBusy || message.trim() === ""}
            onClick={decide({ decision: "correct", message })}
          >
            Correct
          </button>
        </div>
      </div>
      <Problem>{error}</Problem>
    </section>
  )
}

const Inbox = ({ session }: { readonly session: OpenSession }) => {
  const { error, isBusy, run } = useAction()
  const waiting = session.inbox.value
  if (waiting.length === 0) return undefined
  return (
    <section class="inbox" aria-label="Inbox">
      <h3>Waiting</h3>
      <ol>
        {waiting.map(({ delivery, id, prompt }) => (
          <li key={id}>
            <Badge>{delivery}</Badge>
            <span class="one-line">
              <Text>{prompt.text}</Text>
            </span>
            <button type="button" disabled={isBusy} onClick={() => void run(() => session.withdraw(id))}>
              Withdraw
            </button>
          </li>
        ))}
      </ol>
      <Problem>{error}</Problem>
    </section>
  )
}

const Question = ({ question, session }: { readonly question: PendingQuestion; readonly session: OpenSession }) => {
  const { error, isBusy, run } = useAction()
  const [answers, setAnswers] = useState<ReadonlyArray<string>>(question.questions.map(() => ""))
  const set = (index: number, text: string) => setAnswers(answers.map((each, at) => (at === index ? text : each)))
  /** A suggestion of several is added or taken away, one of one replaces. */
  const choose = (index: number, label: string, isMultiple: boolean) => {
    const lines = (answers[index] ?? "").split("\n").filter((line) => line !== "")
    if (!isMultiple) return set(index, label)
    set(index, (lines.includes(label) ? lines.filter((line) => line !== label) : [...lines, label]).join("\n"))
  }
  return (
    <form
      class="question"
      onSubmit={(event) => {
        event.preventDefault()
        void run(() => session.answer(question, answers))
      }}
    >
      {question.questions.map(({ header, multiple = false, options = [], question: text }, index) => (
        <fieldset key={index}>
          <legend>
            {header === undefined ? undefined : <Badge>{header}</Badge>} <Text>{text}</Text>
          </legend>
          <div class="chips">
            {options.map(({ description, label }) => (
              <button
                key={label}
                type="button"
                class="chip"
                title={description}
                aria-pressed={(answers[index] ?? "").split("\n").includes(label)}
                onClick={() => choose(index, label, multiple)}
              >
                <Text>{label}</Text>
              </button>
            ))}
          </div>
          <textarea
            rows={1}
            aria-label={`Answer to: ${text}`}
            value={answers[index]}
            onInput={({ currentTarget }) => set(index, currentTarget.value)}
          />
        </fieldset>
      ))}
      <div class="actions">
        <button type="submit" class="main" disabled={isBusy || answers.some((each) => each.trim() === "")}>
          Answer
        </button>
        <button type="button" disabled={isBusy} onClick={() => void run(() => session.dismiss(question))}>
          Dismiss
        </button>
      </div>
      <Problem>{error}</Problem>
    </form>
  )
}

const freshID = (): string => `msg_${crypto.randomUUID()}`

export const Composer = ({ isRunning, session }: { readonly session: OpenSession; readonly isRunning: boolean }) => {
  const { error, isBusy, run } = useAction()
  const [text, setText] = useState("")
  // The same text after a lost answer has the same id, so it is admitted once (HT-12).
  const id = useRef(freshID())
  const change = (next: string) => {
    id.current = freshID()
    setText(next)
  }
  const draft = session.draft.value
  useEffect(() => {
    if (draft === undefined) return
    change(draft)
    session.draft.value = undefined
  }, [draft])
  const send = async (delivery: "steer" | "queue") => {
    if (text.trim() === "") return
    const sent = id.current
    // What was written meanwhile is another prompt, and stays.
    if ((await run(() => session.prompt(text, delivery, sent))) && id.current === sent) change("")
  }
  return (
    <section class="composer" aria-label="Prompt">
      {session.questions.value.map((question) => (
        <Question key={`${question.messageID} ${question.callID}`} question={question} session={session} />
      ))}
      {session.permissions.value.map((permission) => (
        <Permission key={permission.ask} permission={permission} session={session} />
      ))}
      <Inbox session={session} />
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send("steer")
        }}
      >
        <textarea
          rows={2}
          aria-label="Prompt"
          placeholder={isRunning ? "Steer the running turn" : "Write a prompt"}
          value={text}
          onInput={({ currentTarget }) => change(currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
            event.preventDefault()
            void send(event.ctrlKey || event.metaKey ? "queue" : "steer")
          }}
        />
        <div class="actions">
          <span class="soft keys">
            <kbd>Enter</kbd> {isRunning ? "steer" : "send"} <kbd>Ctrl Enter</kbd> queue
          </span>
          {isRunning ? (
            <button type="button" disabled={isBusy} onClick={() => void run(() => session.interrupt())}>
              Interrupt
            </button>
          ) : undefined}
          <button type="button" disabled={isBusy || text.trim() === ""} onClick={() => void send("queue")}>
            Queue
          </button>
          <button type="submit" class="main" disabled={isBusy || text.trim() === ""}>
            {isRunning ? "Steer" : "Send"}
          </button>
        </div>
        <Problem>{error}</Problem>
      </form>
    </section>
  )
}
