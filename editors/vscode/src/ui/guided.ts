/** A few questions in a row, each in the same box, with a way back. */

import * as l10n from "@vscode/l10n";
import * as vscode from "vscode";
import { fromBox, toBox } from "../logic/texts";

export interface Question {
  title: string;
  prompt: string;
  placeholder?: string;
  value?: string;
  optional?: boolean;
}

/** The answers, or undefined where the user left. Line breaks are shown as ⏎. */
export async function ask(questions: readonly Question[]): Promise<string[] | undefined> {
  const answers = questions.map((question) => question.value ?? "");
  for (let at = 0; at < questions.length; ) {
    const answer = await askOne(questions[at], answers[at], at, questions.length);
    if (answer === undefined) {
      return undefined;
    }
    if (answer === vscode.QuickInputButtons.Back) {
      at -= 1;
    } else {
      answers[at] = answer as string;
      at += 1;
    }
  }
  return answers.map((answer) => answer.trim());
}

function askOne(question: Question, value: string, at: number, total: number): Promise<string | vscode.QuickInputButton | undefined> {
  return new Promise((resolve) => {
    const box = vscode.window.createInputBox();
    box.title = question.title;
    box.prompt = question.prompt;
    box.placeholder = question.placeholder;
    box.value = toBox(value);
    box.ignoreFocusOut = true;
    if (total > 1) {
      box.step = at + 1;
      box.totalSteps = total;
    }
    box.buttons = at > 0 ? [vscode.QuickInputButtons.Back] : [];
    const finish = (answer: string | vscode.QuickInputButton | undefined): void => {
      resolve(answer);
      box.dispose();
    };
    box.onDidTriggerButton((button) => finish(button));
    box.onDidChangeValue(() => {
      box.validationMessage = undefined;
    });
    box.onDidAccept(() => {
      const answer = fromBox(box.value);
      if (answer.trim() === "" && !question.optional) {
        box.validationMessage = l10n.t("Please write a few words, or press Escape to leave.");
        return;
      }
      finish(answer);
    });
    box.onDidHide(() => finish(undefined));
    box.show();
  });
}
