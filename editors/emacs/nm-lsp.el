;;; nm-lsp.el --- A memory for code, through Eglot  -*- lexical-binding: t; -*-

;; Package-Requires: ((emacs "28.1") (eglot "1.9"))

;;; Commentary:

;; Put this folder on `load-path' and write (require 'nm-lsp) in your init file.  Eglot runs one server for each major
;; mode, so the server is given to modes that usually have none; `nm-lsp-modes' can name more.  Questions and decisions
;; work in every mode, by the command line: M-x nm-lsp-ask, nm-lsp-guard, nm-lsp-stale.

;;; Code:

(require 'eglot)
(require 'vc)

(defgroup nm-lsp nil
  "A memory for code."
  :group 'tools)

(defcustom nm-lsp-program "nm-lsp"
  "The command of the language server."
  :type 'string)

(defcustom nm-lsp-modes '(text-mode conf-mode)
  "Major modes that Eglot runs the server for, and all that derive from them.
Those with a server of their own keep it.  Set it before this file is loaded."
  :type '(repeat symbol))

;; Appended, so that the entries of modes that derive from these come first.
(add-to-list 'eglot-server-programs (cons nm-lsp-modes (list nm-lsp-program "--stdio")) t)

(defun nm-lsp--show (name &rest arguments)
  "Show in buffer NAME what the command prints for ARGUMENTS."
  (unless (executable-find nm-lsp-program)
    (user-error "%s was not found; install it (`pipx install .' in a copy of its repository) or set `nm-lsp-program'"
                nm-lsp-program))
  (let ((buffer (get-buffer-create name))
        (default-directory (or (vc-root-dir) default-directory)))
    (with-current-buffer buffer
      (let ((inhibit-read-only t))
        (erase-buffer)))
    (make-process
     :name "nm-lsp"
     :buffer buffer
     :command (cons nm-lsp-program arguments)
     ;; A terminal would get colors, which a buffer shows as escapes.
     :connection-type 'pipe
     :sentinel (lambda (process _event)
                 (unless (process-live-p process)
                   (with-current-buffer buffer
                     (goto-char (point-min))
                     (special-mode))
                   (display-buffer buffer))))))

(defun nm-lsp-ask (question)
  "Show the answer to QUESTION about this code base."
  (interactive "sWhat do you want to know? ")
  (nm-lsp--show "*nm-lsp answer*" "query" question))

(defun nm-lsp-guard ()
  "Show the decisions that govern this file."
  (interactive)
  (unless buffer-file-name
    (user-error "This buffer has no file"))
  (nm-lsp--show "*nm-lsp decisions*" "guard" buffer-file-name))

(defun nm-lsp-stale ()
  "Show the decisions of this code base that no longer hold."
  (interactive)
  (nm-lsp--show "*nm-lsp decisions*" "decisions" "list" "--status" "stale"))

(provide 'nm-lsp)
;;; nm-lsp.el ends here
