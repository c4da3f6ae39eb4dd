/** The contract of `Search` in memory. */
import { promptHistoryContract } from "../contracts/PromptHistoryContract.ts"
import { searchContract } from "../contracts/SearchContract.ts"
import { memorySearch as layer } from "./support/Searching.ts"

searchContract({ layer })
promptHistoryContract({ layer })
