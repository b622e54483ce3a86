;;; emacs_session.el --- One session of a person in a real Emacs with Eglot  -*- lexical-binding: t; -*-

;;; Commentary:

;; Run by test_emacs.py, which holds the expectations.  Writes what was seen as JSON to $NM_OUT.

;;; Code:

(require 'json)

(defvar nm-seen nil "What was seen, by name.")
(defvar nm-asked nil "The questions that were put to the person.")
(defvar nm-answers nil "How the person answers them, in order: the first choice that begins so.")

(defun nm-see (name value)
  "Note VALUE under NAME."
  (push (cons name value) nm-seen))

(defun nm-hover ()
  "The hover at point."
  (jsonrpc-request (eglot-current-server) :textDocument/hover (eglot--TextDocumentPositionParams)))

(defun nm-wait (what holds)
  "Let the servers talk until HOLDS returns non-nil; WHAT is it that was waited for.
The person moves the cursor now and then: what comes in one piece
with the answer to a request stays unread by older versions of
jsonrpc until more comes."
  (let ((end (+ (float-time) 40)) (turn 0) found)
    (while (not (setq found (funcall holds)))
      (when (> (float-time) end)
        (error "Waited in vain for %s; diagnostics: %S" what (nm-marks)))
      (accept-process-output nil 0.02)
      (when (and (zerop (mod (setq turn (1+ turn)) 20)) (eglot-current-server))
        (nm-hover)))
    found))

(defun nm-marks ()
  "The diagnostics of this buffer."
  (mapcar #'flymake-diagnostic-text (flymake-diagnostics)))

(defun nm-answer (prompt choices &rest _)
  "Choose for PROMPT among CHOICES what `nm-answers' says."
  (let* ((names (mapcar (lambda (one) (if (consp one) (car one) one)) choices))
         (wanted (pop nm-answers)))
    (push (vconcat (list prompt) names) nm-asked)
    (or (seq-find (lambda (name) (string-prefix-p wanted name)) names)
        (error "Nothing begins with %S among %S" wanted names))))

(defun nm-page (name command &rest arguments)
  "The text of buffer NAME that COMMAND fills, called with ARGUMENTS."
  (when (get-buffer name) (kill-buffer name))
  (save-window-excursion
    (apply command arguments)
    (nm-wait name (lambda () (with-current-buffer name (derived-mode-p 'special-mode))))
    (with-current-buffer name (buffer-string))))

(defun nm-act (&rest answers)
  "Take the code action at the top of the buffer that ANSWERS begin with; the questions that were asked."
  (setq nm-asked nil nm-answers answers)
  ;; By a key; else Eglot opens a menu of the window system.
  (let ((last-nonmenu-event ?\r))
    (eglot-code-actions (point-min) (point-max) nil t))
  (nm-wait "an answer to every question" (lambda () (null nm-answers)))
  (vconcat (reverse nm-asked)))

(defun nm-session ()
  "Everything that is done, in order."
  (require 'nm-lsp)
  (fset 'completing-read #'nm-answer)
  (setq eglot-sync-connect t eglot-autoreconnect nil)
  (let ((default-directory (file-name-as-directory (getenv "NM_PROJECT"))))
    (find-file "rules.rst"))
  (add-hook 'rst-mode-hook #'eglot-ensure)
  (nm-see 'mode (symbol-name major-mode))
  (call-interactively #'eglot)
  (let ((server (nm-wait "a server" #'eglot-current-server)))
    (nm-see 'server (plist-get (eglot--server-info server) :name))
    (nm-see 'root (expand-file-name (project-root (eglot--project server)))))
  (nm-see 'first (vconcat (nm-marks)))

  (let ((start (float-time)))
    (call-process "git" nil nil nil "commit" "-q" "-a" "-m" "louder")
    (nm-wait "the diagnostic" #'nm-marks)
    (nm-see 'seconds (- (float-time) start)))
  (nm-see 'marks (vconcat (nm-marks)))
  (nm-see 'hover (plist-get (plist-get (nm-hover) :contents) :value))
  (nm-see 'guard (nm-page "*nm-lsp decisions*" #'nm-lsp-guard))
  (nm-see 'stale (nm-page "*nm-lsp decisions*" #'nm-lsp-stale))

  (nm-see 'restore (nm-act "Restore (it still holds)"))
  (nm-wait "no diagnostic" (lambda () (null (nm-marks))))
  (nm-see 'invalidate (nm-act "Invalidate" "The reason no longer applies"))
  (nm-see 'after (nm-wait "the verdict"
                          (lambda ()
                            (let ((page (nm-page "*nm-lsp decisions*" #'nm-lsp-guard)))
                              (and (string-match-p "INVALIDATED" page) page)))))

  (nm-see 'answer (nm-page "*nm-lsp answer*" #'nm-lsp-ask "when do quiet hours begin?"))
  (let ((nm-lsp-program "/nowhere/nm-lsp"))
    (nm-see 'missing (condition-case problem (nm-lsp-stale) (user-error (cadr problem)))))
  (with-temp-buffer
    (nm-see 'no-file (condition-case problem (nm-lsp-guard) (user-error (cadr problem)))))
  (eglot-shutdown (eglot-current-server)))

(condition-case problem
    (nm-session)
  (error (nm-see 'problem (error-message-string problem))))
(let ((coding-system-for-write 'utf-8))
  (with-temp-file (getenv "NM_OUT")
    (insert (json-encode nm-seen))))

;;; emacs_session.el ends here
