/** Prompts a session, shows what waits in its inbox, and answers its questions. Spec: IP-9 in specs/inspector.md. */
import { useEffect, useRef, useState } from "preact/hooks"
import type { PendingQuestion } from "@daybook/core/domain/Question"
import type { OpenSession } from "../state/OpenSession.ts"
import { useAction } from "./Action.ts"
import { Badge, Text } from "./Parts.tsx"
import { Permission } from "./Permission.tsx"

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
      {error === undefined ? undefined : <p class="problem">{error}</p>}
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
      {error === undefined ? undefined : <p class="problem">{error}</p>}
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
        {error === undefined ? undefined : (
          <p class="problem" role="alert">
            {error}
          </p>
        )}
      </form>
    </section>
  )
}
