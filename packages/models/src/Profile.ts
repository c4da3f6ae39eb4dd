/**
 * What each model server accepts, as data: lowering and the writers read it, nothing else knows a server by name. A host overrides
 * any field. Facts come from the servers' public documentation and error messages. Spec: MD-80..MD-89 in specs/models.md.
 */

/** The protocols: Messages, Responses, chat completions, and Gemini's own. */
export type Api = "anthropic" | "openai" | "openai-compatible" | "gemini"

/** Media that a message may contain. */
export type Medium = "image" | "pdf"

/** The rules of one server. */
export interface Profile {
  /** A name for people: "DeepSeek". */
  readonly name: string
  readonly api: Api
  /** The address, up to the protocol's path. Absent if each user has another. */
  readonly baseUrl?: string
  /** Environment variables of its key, the usual one first. */
  readonly keys: ReadonlyArray<string>
  /** The part of an address's host that tells this server: `api.deepseek.com`. */
  readonly hosts: ReadonlyArray<string>
  /**
   * `anywhere`: system messages may stand between others. `leading`: several, before all others. `one`: a single one, so that
   * several are joined.
   */
  readonly system: "anywhere" | "leading" | "one"
  readonly systemRole: "system" | "developer"
  /** Whether user and assistant messages must alternate, so that neighbours are joined. */
  readonly alternates: boolean
  /** Whether an answer must stand between a tool's result and a user message. */
  readonly answersResults: boolean
  /** The form of call ids. `exact`: `length` letters and digits; otherwise at most `length` of the characters in `set`. */
  readonly callIds: { readonly set: "word" | "printable"; readonly length: number; readonly exact: boolean }
  /** Where thinking stands in an answer, and when it is sent back. `calls`: beside the calls of the answer. */
  readonly thinking: {
    readonly field: "reasoning_content" | "reasoning" | "thinking"
    readonly back: "never" | "calls" | "always"
    /** Whether an answer with calls is rejected without the field. */
    readonly required: boolean
  }
  /** How a level of effort is asked for. */
  readonly effort:
    "reasoning_effort" | "reasoning.effort" | "thinking.type" | "enable_thinking" | "chat_template_kwargs" | "none"
  /** Media that its servers take, unless the catalogue knows the model. */
  readonly media: ReadonlyArray<Medium>
  /** Most pictures of one request. */
  readonly pictures: number
  readonly maxTokens: "max_tokens" | "max_completion_tokens" | "none"
  /** How the key is sent. `bearer`: `authorization: Bearer`; `own`: the protocol's own header. */
  readonly keyHeader: "own" | "bearer"
  /** Whether Anthropic's cache marks are sent. */
  readonly cacheMarks: boolean
  /** Whether the usage is asked for with `stream_options`. */
  readonly streamOptions: boolean
  /** Whether a forced tool choice (`required`, a name) is accepted; otherwise it becomes `auto`. */
  readonly toolChoice: boolean
  /** How a list of models with their windows is read: GET `models`, Ollama's `/api/show`, llama.cpp's `/props`. */
  readonly listing: "models" | "ollama" | "llama.cpp" | "none"
}
